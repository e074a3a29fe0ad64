import Model
import ObjectStore

/// A device's progress in a realm, or in the whole environment.
enum SyncProgress: Sendable, Equatable {
    /// The device has everything up to this position, and continues in the change log.
    case changeLog(Int64)
    /// A download in key order is in progress; changes since `start` follow from the change log.
    case download(Download)

    struct Download: Sendable, Equatable {
        /// The counter at its start.
        let start: Int64
        /// The position that the device had before it; 0 if none.
        let base: Int64
        /// The last downloaded key.
        var key: Cursor.Key?
    }

    /// Returns the progress of a device with this cursor; `nil` if it must discard its copy.
    init?(_ cursor: Cursor?, _ counter: EnvironmentCounter, catchUpCountMax: Int64) {
        guard let cursor, cursor.isValid(for: counter) else { return nil }
        if let key = cursor.key {
            // Tombstones that it has not received must still exist, unless it started without a copy.
            guard cursor.position == 0 || cursor.position >= counter.compactedPosition else { return nil }
            self = .download(Download(start: cursor.start, base: cursor.position, key: key))
            return
        }
        guard cursor.position >= counter.compactedPosition else { return nil }
        self.init(from: cursor.position, counter, catchUpCountMax: catchUpCountMax)
    }

    /// A device with a large lag downloads the realm, in which each object is present once, however often it changed.
    init(from position: Int64, _ counter: EnvironmentCounter, catchUpCountMax: Int64) {
        let isFar = counter.position - position > catchUpCountMax
        self = isFar ? .download(Download(start: counter.position, base: position)) : .changeLog(position)
    }

    /// Returns the progress of a device without a copy.
    static func fresh(_ counter: EnvironmentCounter) -> SyncProgress {
        .download(Download(start: counter.position, base: 0))
    }

    /// Returns whether compaction has not passed this progress.
    func isValid(for counter: EnvironmentCounter) -> Bool {
        switch self {
        case .changeLog(let position): position >= counter.compactedPosition
        case .download(let download):
            download.start >= counter.compactedPosition
                && (download.base == 0 || download.base >= counter.compactedPosition)
        }
    }

    var download: Download? {
        if case .download(let download) = self { download } else { nil }
    }
}

/// A realm that a device follows, with its progress.
struct OpenRealm: Sendable {
    let path: RealmPath
    let number: Int32
    var progress: SyncProgress
}
