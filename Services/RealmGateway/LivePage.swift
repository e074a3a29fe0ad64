import FoundationEssentials
import Model
import NIOCore
import Postgres
import Realms

/// Changed objects of one realm, encoded once for all devices that have it open.
final class LiveChunk: Sendable {
    let realm: Int32
    /// The objects among them that permissions are made of.
    let touches: [Touch]
    let byteCount: Int
    private let objects: ObjectLine
    private let cursor: Cursor
    private let whole: ByteBuffer

    /// An object that permissions are made of.
    struct Touch: Sendable {
        let kind: Kind
        let id: UUID
        /// Whether it is there after the change; one that has changed again since may not have been.
        let isThere: Bool

        init?(kind: String, id: UUID, isThere: Bool) {
            switch Kind(rawValue: kind) {
            case .user?, .person?, .membership?, .team?, .share?: break
            default: return nil
            }
            guard let kind = Kind(rawValue: kind) else { return nil }
            self.kind = kind
            self.id = id
            self.isThere = isThere
        }
    }

    init(realm: Int32, objects: ObjectLine, cursor: Cursor, touches: [Touch]) {
        self.realm = realm
        self.objects = objects
        self.cursor = cursor
        self.touches = touches
        whole = objects.line(above: 0, cursor) ?? ByteBuffer()
        byteCount = whole.readableBytes
    }

    /// The line for a device that holds everything up to a position; `nil` when it holds all of this.
    func line(above position: Int64) -> ByteBuffer? {
        if let first = objects.objects.first, first.position > position { return whole }
        return objects.line(above: position, cursor)
    }
}

/// What one device is told of one read of the change log.
struct Delivery: Sendable {
    /// Everything of the device's realms up to here is in this delivery or came before it.
    let position: Int64
    let chunks: [LiveChunk]
    /// Whether the realms are whole at `position`: not in the middle of a longer read.
    let isWhole: Bool

    var byteCount: Int { chunks.reduce(64) { $0 + $1.byteCount } }
}

/// A page of an environment's change log, for the realms that devices have open.
struct LivePage: Sendable {
    let counter: EnvironmentCounter
    /// The change log was read up to here.
    let position: Int64
    let chunks: [LiveChunk]
    let isFull: Bool

    /// - Parameter path: The path of a realm that is open; `nil` for the others, which are not encoded.
    static func read(
        in environment: EnvironmentID, after position: Int64, countMax: Int, path: (Int32) -> RealmPath?,
        on connection: inout Connection
    ) throws -> LivePage {
        // The counter first: what it counts is seen by the statement after it.
        let answers = try connection.run([
            EnvironmentCounter.load(environment),
            Feed.changes(in: environment, after: position, kinds: Kind.allCases, countMax: countMax),
        ])
        let counter = try EnvironmentCounter(try firstRow(answers[0]))
        var open: [Int32: (line: ObjectLine, touches: [LiveChunk.Touch])] = [:]
        var chunks: [LiveChunk] = []
        func take(_ realm: Int32, at position: Int64) {
            guard let (line, touches) = open.removeValue(forKey: realm) else { return }
            let cursor = Cursor(generation: counter.generation, start: position, position: position)
            chunks.append(LiveChunk(realm: realm, objects: line, cursor: cursor, touches: touches))
        }
        var last = position
        for row in answers[1] {
            last = try row.value(0)
            let realm: Int32 = try row.value(1)
            guard let path = path(realm) else { continue }
            let kind: String = try row.value(2)
            let id: UUID = try row.value(3)
            let isCurrent: Bool = try row.value(6)
            let isThere = unsafe isCurrent && row.withJSON(5) { unsafe $0 != nil }
            // A permission may end here although its object's newer state comes with a later page: what lies between
            // must not be handed on.
            let touch = LiveChunk.Touch(kind: kind, id: id, isThere: isThere)
            guard isCurrent || touch != nil else { continue }
            var (line, touches) = open.removeValue(forKey: realm) ?? (ObjectLine(path), [])
            if isCurrent { line.append(kind: kind, id: id, position: last, row: row, fieldsColumn: 5) }
            if let touch { touches.append(touch) }
            open[realm] = (line, touches)
            if line.isFull { take(realm, at: last) }
        }
        for realm in open.keys.sorted() { take(realm, at: last) }
        let isFull = answers[1].count == countMax
        return LivePage(
            counter: counter, position: isFull ? last : max(last, counter.position), chunks: chunks, isFull: isFull)
    }
}
