import DeviceClient
import Essentials
import FoundationEssentials
import Model

/// One response to `POST /v1/sync`, which continues while it is read.
struct SimulatedStream {
    /// A line and, for a checkpoint, the server's content at that time.
    struct Line {
        let line: SyncLine
        var content: [RealmPath: RealmContent]?
    }

    private enum Progress {
        case whole(Int64)
        /// In the order of the objects' identities; `base` is the position before the download.
        case download(start: Int64, base: Int64, after: ObjectID?)
    }

    private static let pageCount = 2
    /// A device that lags further downloads its realm again.
    private static let catchUpMax: Int64 = 40

    private let generation: Int64
    private var named: [RealmPath: String?]
    private var open: [RealmPath: Progress] = [:]
    private var pending: [Line] = []
    private var checkpoint: Int64 = -1
    /// Whether the server has closed the stream.
    private(set) var isEnded = false

    init(_ server: SimulatedServer, named: [RealmPath: String?]) {
        generation = server.generation
        self.named = named
    }

    /// Returns the next line; `nil` if there is none.
    mutating func next(_ server: SimulatedServer) -> Line? {
        if !pending.isEmpty { return pending.removeFirst() }
        guard server.generation == generation else {
            isEnded = true
            return nil
        }
        if let line = opened(server) { return Line(line: line) }
        for (path, progress) in open.sorted(by: { $0.key < $1.key }) {
            guard case .download(let start, let base, let after) = progress else { continue }
            return Line(line: page(of: path, start, base, after, server))
        }
        guard server.position > checkpoint else { return nil }
        catchUp(server)
        return pending.removeFirst()
    }

    /// Returns a keepalive.
    func keepalive(_ server: SimulatedServer) -> Line? {
        guard pending.isEmpty, server.generation == generation, server.position == checkpoint,
            Set(open.keys) == server.permitted
        else { return nil }
        let (cursor, cursors) = self.cursors
        return Line(
            line: .keepalive(expiresInSeconds: 60, position: checkpoint, cursor: cursor, cursors: cursors),
            content: server.content)
    }

    private mutating func opened(_ server: SimulatedServer) -> SyncLine? {
        for path in open.keys.sorted() where !server.permitted.contains(path) {
            open[path] = nil
            return .closed(path)
        }
        for path in named.keys.sorted() where !server.permitted.contains(path) {
            named[path] = nil
            return .closed(path)
        }
        for path in server.permitted.sorted() where open[path] == nil {
            let progress = progress(named.removeValue(forKey: path) ?? nil, server)
            open[path] = progress ?? .download(start: server.position, base: 0, after: nil)
            checkpoint = -1
            return .open(path, isReset: progress == nil)
        }
        for (path, progress) in open.sorted(by: { $0.key < $1.key }) where !isGood(progress, server) {
            open[path] = .download(start: server.position, base: 0, after: nil)
            checkpoint = -1
            return .open(path, isReset: true)
        }
        return nil
    }

    private func isGood(_ progress: Progress, _ server: SimulatedServer) -> Bool {
        switch progress {
        case .whole(let position): position >= server.compactedPosition
        case .download(let start, let base, _):
            start >= server.compactedPosition && (base == 0 || base >= server.compactedPosition)
        }
    }

    private func progress(_ cursor: String?, _ server: SimulatedServer) -> Progress? {
        let parts = cursor?.split(separator: ":") ?? []
        guard parts.count >= 3, Int64(parts[0]) == generation, let start = Int64(parts[1]), let base = Int64(parts[2])
        else { return nil }
        var progress = Progress.whole(base)
        if parts.count == 5, let kind = Kind(rawValue: String(parts[3])), let id = UUID(uuidString: String(parts[4])) {
            progress = .download(start: start, base: base, after: ObjectID(kind: kind, id: id))
        } else if server.position - base > Self.catchUpMax {
            progress = .download(start: server.position, base: base, after: nil)
        }
        return isGood(progress, server) ? progress : nil
    }

    private mutating func page(
        of path: RealmPath, _ start: Int64, _ base: Int64, _ after: ObjectID?, _ server: SimulatedServer
    ) -> SyncLine {
        let missing = (server.realms[path] ?? [:]).filter { id, object in
            (after.map { id > $0 } ?? true) && object.position > base && (base > 0 || object.fields != nil)
        }
        let page = missing.sorted { $0.key < $1.key }.prefix(Self.pageCount)
        guard let last = page.last?.key else {
            open[path] = .whole(start)
            // An empty line of objects, because a realm can be empty.
            return .objects(path, cursor: nil, [])
        }
        open[path] = .download(start: start, base: base, after: last)
        let cursor = "\(generation):\(start):\(base):\(last.kind.rawValue):\(last.id.text)"
        return .objects(path, cursor: cursor, page.map { Self.change($0.key, $0.value) })
    }

    private mutating func catchUp(_ server: SimulatedServer) {
        for (path, progress) in open.sorted(by: { $0.key < $1.key }) {
            guard case .whole(let held) = progress else { continue }
            var changes = (server.realms[path] ?? [:]).filter { $0.value.position > held }.sorted {
                $0.value.position < $1.value.position
            }[...]
            while let last = changes.prefix(Self.pageCount).last?.value.position {
                let list = changes.prefix(Self.pageCount).map { Self.change($0.key, $0.value) }
                let cursor = "\(generation):\(last):\(last)"
                pending.append(Line(line: .objects(path, cursor: cursor, list)))
                changes = changes.dropFirst(Self.pageCount)
            }
            open[path] = .whole(server.position)
        }
        checkpoint = server.position
        let (cursor, cursors) = self.cursors
        pending.append(
            Line(
                line: .checkpoint(position: checkpoint, cursor: cursor, cursors: cursors), content: server.content))
    }

    /// Few realms are listed in addition to the common cursor.
    private var cursors: (String, [RealmPath: String]) {
        let cursor = "\(generation):\(checkpoint):\(checkpoint)"
        return (cursor, checkpoint % 2 == 0 ? [:] : open.mapValues { _ in cursor })
    }

    private static func change(_ id: ObjectID, _ object: SimulatedServer.Object) -> SyncLine.Change {
        SyncLine.Change(id: id, object: object.held)
    }
}
