import Model
import ObjectStore

/// How far a caller has got with a realm, or with the whole environment.
enum Progress: Sendable, Equatable {
    /// Everything up to here is held; what is new comes from the change log.
    case whole(Int64)
    /// A download in key order is under way; what changes meanwhile is caught up with from `start`.
    case download(Download)

    struct Download: Sendable, Equatable {
        /// The counter when it began.
        let start: Int64
        /// What the device holds without it; 0: nothing.
        let base: Int64
        /// The last key it got.
        var key: Cursor.Key?
    }

    /// How a device with this cursor goes on; `nil` when what it holds must be thrown away.
    init?(_ cursor: Cursor?, _ counter: EnvironmentCounter, catchUpCountMax: Int64) {
        guard let cursor, cursor.isGood(for: counter) else { return nil }
        if let key = cursor.key {
            // Tombstones it has not been told of yet must still be there, unless it began with nothing.
            guard cursor.position == 0 || cursor.position >= counter.compactedPosition else { return nil }
            self = .download(Download(start: cursor.start, base: cursor.position, key: key))
            return
        }
        guard cursor.position >= counter.compactedPosition else { return nil }
        self.init(from: cursor.position, counter, catchUpCountMax: catchUpCountMax)
    }

    /// A device that lags much reads its realm, in which an object stands once however often it changed.
    init(from position: Int64, _ counter: EnvironmentCounter, catchUpCountMax: Int64) {
        let isFar = counter.position - position > catchUpCountMax
        self = isFar ? .download(Download(start: counter.position, base: position)) : .whole(position)
    }

    /// A device that holds nothing.
    static func fresh(_ counter: EnvironmentCounter) -> Progress {
        .download(Download(start: counter.position, base: 0))
    }

    /// Whether compaction has not overtaken it.
    func isGood(for counter: EnvironmentCounter) -> Bool {
        switch self {
        case .whole(let position): position >= counter.compactedPosition
        case .download(let download):
            download.start >= counter.compactedPosition
                && (download.base == 0 || download.base >= counter.compactedPosition)
        }
    }

    var download: Download? {
        if case .download(let download) = self { download } else { nil }
    }
}

/// A realm a device has open, and how far it has got.
struct OpenRealm: Sendable {
    let path: RealmPath
    let number: Int32
    var progress: Progress
}
