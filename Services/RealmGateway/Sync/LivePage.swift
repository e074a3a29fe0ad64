import FoundationEssentials
import Model
import NIOCore
import ObjectStore
import Postgres

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
        /// What of permissions it says.
        let source: PermissionSource
        let id: UUID
        /// Whether it is there after the change; one that has changed again since may not have been.
        let isThere: Bool

        private static let sources = Dictionary(
            uniqueKeysWithValues: Kind.allCases.compactMap { kind in
                kind.row.permissions.map { (kind, $0) }
            })

        /// The kinds that permissions are made of.
        static let kinds = Array(sources.keys)

        init?(kind: Kind, id: UUID, isThere: Bool) {
            guard let source = Self.sources[kind] else { return nil }
            self.source = source
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
    /// Every change up to here that permissions are made of is in this delivery or came before it.
    let touchesPosition: Int64
    let chunks: [LiveChunk]
    /// Whether the realms are whole at `position`: not in the middle of a longer read.
    let isWhole: Bool

    var byteCount: Int { chunks.reduce(64) { $0 + $1.byteCount } }
}

/// A page of an environment's change log, for the realms that devices have open.
///
/// A page may end inside a transaction that takes a permission away further on. Then the rest of the log is looked
/// through for what permissions are made of, and that is handed on with this page: who is concerned by it takes a new
/// snapshot instead of the page.
struct LivePage: Sendable {
    /// Objects that permissions are made of, looked ahead for at a time; more than these are not told one by one.
    static let touchCountMax = 10_000

    let counter: EnvironmentCounter
    /// The change log was read up to here.
    let position: Int64
    /// Up to here it was looked through for what permissions are made of: whole transactions, unless `isFull` is false
    /// or an earlier page has looked further.
    let touchesPosition: Int64
    let chunks: [LiveChunk]
    /// What changed, in whatever realm.
    let kinds: Set<Kind>
    let isFull: Bool
    /// So much concerns permissions that all devices are to look for themselves; the page is not handed on.
    let isOverfull: Bool

    /// - Parameters:
    ///   - known: Up to where an earlier page has looked ahead.
    ///   - path: The path of a realm that is open; `nil` for the others, which are not encoded.
    static func read(
        in environment: EnvironmentID, after position: Int64, touchesKnownTo known: Int64, countMax: Int,
        path: (Int32) -> RealmPath?, on connection: inout Connection
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
        var kinds: Set<Kind> = []
        var last = position
        for row in answers[1] {
            last = try row.value(0)
            let realm: Int32 = try row.value(1)
            guard let kind = Kind(number: try row.value(2)) else { continue }
            kinds.insert(kind)
            guard let path = path(realm) else { continue }
            let id: UUID = try row.value(3)
            let isCurrent: Bool = try row.value(6)
            let isThere = unsafe isCurrent && row.withBytes(5) { unsafe $0 != nil }
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
        let isFull = answers[1].count == countMax
        let reached = isFull ? last : max(last, counter.position)
        var (touchesPosition, isOverfull) = (reached, false)
        if isFull, last > known {
            let ahead = try lookAhead(in: environment, after: last, on: &connection)
            (touchesPosition, isOverfull) = (max(last, ahead.position), ahead.isOverfull)
            for (realm, touch) in ahead.touches {
                guard let path = path(realm) else { continue }
                open[realm, default: (ObjectLine(path), [])].touches.append(touch)
            }
        }
        for realm in open.keys.sorted() { take(realm, at: last) }
        return LivePage(
            counter: counter, position: reached, touchesPosition: touchesPosition, chunks: chunks, kinds: kinds,
            isFull: isFull, isOverfull: isOverfull)
    }

    /// What the rest of the change log says of permissions, up to the counter: where a transaction ends.
    private static func lookAhead(
        in environment: EnvironmentID, after position: Int64, on connection: inout Connection
    ) throws -> (position: Int64, touches: [(realm: Int32, touch: LiveChunk.Touch)], isOverfull: Bool) {
        // The counter first: what it counts is seen by the statement after it.
        let answers = try connection.run([
            EnvironmentCounter.load(environment),
            """
            SELECT c.realm_id, c.kind, c.id, coalesce(NOT o.deleted, false)
            FROM (
                SELECT * FROM store.change WHERE environment_id = \(environment.rawValue) AND position > \(position)
                    AND kind = ANY (\(LiveChunk.Touch.kinds))
                ORDER BY position LIMIT \(Int64(touchCountMax))
            ) c
            LEFT JOIN LATERAL (
                SELECT o.position, o.deleted FROM store.object o
                WHERE o.environment_id = \(environment.rawValue) AND o.realm_id = c.realm_id AND o.kind = c.kind
                    AND o.id = c.id
                OFFSET 0
            ) o ON o.position = c.position
            """,
        ])
        var touches: [(realm: Int32, touch: LiveChunk.Touch)] = []
        for row in answers[1] {
            let touch = LiveChunk.Touch(kind: try row.value(1), id: try row.value(2), isThere: try row.value(3))
            if let touch { touches.append((try row.value(0), touch)) }
        }
        let counter = try EnvironmentCounter(try firstRow(answers[0]))
        return (counter.position, touches, answers[1].count == touchCountMax)
    }
}
