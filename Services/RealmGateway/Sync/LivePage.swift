import FoundationEssentials
import Model
import NIOCore
import ObjectStore
import Postgres
import Synchronization

/// Changed objects of one realm, encoded once for all devices that follow it.
final class LiveChunk: Sendable {
    let realm: Int32
    /// The changes among them that affect permissions.
    let permissionChanges: [PermissionChange]
    let byteCount: Int
    /// The write checkpoints among the objects, by the client's id; only in realms of uploads.
    let writeCheckpoints: [UUID: Int64]
    private let objects: ObjectLine
    private let cursor: Cursor
    private let fullLine: ByteBuffer
    /// The objects in the bucket format, encoded when a device needs it.
    private let buckets = Mutex<(objects: ObjectLine, fullLine: ByteBuffer)?>(nil)

    /// A change of an object that defines permissions.
    struct PermissionChange: Sendable {
        /// The part of the permissions that the object defines.
        let source: PermissionSource
        let id: UUID
        /// Whether the object exists after the change; false may also mean that it has changed again since.
        let exists: Bool

        private static let sources = Dictionary(
            uniqueKeysWithValues: Kind.allCases.compactMap { kind in
                kind.row.permissions.map { (kind, $0) }
            })

        /// The kinds that define permissions.
        static let kinds = Array(sources.keys)

        init?(kind: Kind, id: UUID, exists: Bool) {
            guard let source = Self.sources[kind] else { return nil }
            self.source = source
            self.id = id
            self.exists = exists
        }
    }

    init(
        realm: Int32, objects: ObjectLine, cursor: Cursor, permissionChanges: [PermissionChange],
        writeCheckpoints: [UUID: Int64] = [:]
    ) {
        self.realm = realm
        self.objects = objects
        self.cursor = cursor
        self.permissionChanges = permissionChanges
        self.writeCheckpoints = writeCheckpoints
        fullLine = objects.line(above: 0, cursor) ?? ByteBuffer()
        byteCount = fullLine.readableBytes
    }

    /// Returns the line for a device that has everything up to a position; `nil` if it has all of this.
    func line(above position: Int64, _ format: LineFormat) -> ByteBuffer? {
        let isWhole = objects.objects.first.map { $0.position > position } ?? false
        guard format != .device else { return isWhole ? fullLine : objects.line(above: position, cursor) }
        return buckets.withLock { encoded in
            let objects = encoded?.objects ?? self.objects.inBuckets(generation: cursor.generation)
            let line = encoded?.fullLine ?? objects.line(above: 0, cursor) ?? ByteBuffer()
            encoded = (objects, line)
            return isWhole ? line : objects.line(above: position, cursor)
        }
    }
}

/// The part of one page of the change log that one device gets.
struct LiveDelivery: Sendable {
    /// The device's realms are complete up to here, with this delivery and the earlier ones.
    let position: Int64
    /// All permission changes up to here are in this delivery or an earlier one.
    let permissionsPosition: Int64
    let chunks: [LiveChunk]
    /// Whether `position` is the end of a transaction: false in the middle of a longer read.
    let isConsistent: Bool

    var byteCount: Int { chunks.reduce(64) { $0 + $1.byteCount } }
}

/// A page of an environment's change log, with the realms that devices follow.
///
/// A page may end inside a transaction that revokes a permission later in the log. Therefore the rest of the log is
/// scanned for permission changes, which are delivered with this page. A device that they affect takes a new snapshot
/// instead of the page.
struct LivePage: Sendable {
    /// Maximum number of permission changes that one scan returns individually.
    static let permissionChangeCountMax = 10_000

    let counter: EnvironmentCounter
    /// The change log was read up to here.
    let position: Int64
    /// The log was scanned for permission changes up to here: the end of a transaction, unless `isFull` is false or an
    /// earlier page has scanned further.
    let permissionsPosition: Int64
    let chunks: [LiveChunk]
    /// The kinds of the changed objects, in all realms.
    let kinds: Set<Kind>
    let isFull: Bool
    /// The scan exceeded its limit: the page is not delivered, and all devices take a new snapshot.
    let exceedsLimit: Bool

    /// - Parameters:
    ///   - scanned: The position up to which an earlier page has scanned for permission changes.
    ///   - names: The names of the kinds.
    ///   - path: Returns the path of a realm that a device follows; `nil` for others, which are not encoded.
    static func read(
        in environment: EnvironmentID, after position: Int64, scannedTo scanned: Int64, countMax: Int,
        names: KindNames, path: (Int32) -> RealmPath?, on connection: inout Connection
    ) throws -> LivePage {
        // The counter is read first, so that the next statement sees everything up to it.
        let results = try connection.run([
            EnvironmentCounter.load(environment),
            Feed.changes(
                in: environment, after: position, kinds: Kind.allCases, own: .all, countMax: countMax),
        ])
        let counter = try EnvironmentCounter(try counterRow(results[0]))
        var open: [Int32: (line: ObjectLine, permissionChanges: [LiveChunk.PermissionChange])] = [:]
        var writeCheckpoints: [Int32: [UUID: Int64]] = [:]
        var chunks: [LiveChunk] = []
        func take(_ realm: Int32, at position: Int64) {
            guard let (line, permissionChanges) = open.removeValue(forKey: realm) else { return }
            let cursor = Cursor(generation: counter.generation, start: position, position: position)
            chunks.append(
                LiveChunk(
                    realm: realm, objects: line, cursor: cursor, permissionChanges: permissionChanges,
                    writeCheckpoints: writeCheckpoints.removeValue(forKey: realm) ?? [:]))
        }
        var kinds: Set<Kind> = []
        var last = position
        for row in results[1] {
            last = try row.value(0)
            let realm: Int32 = try row.value(1)
            guard let kind = try names.kind(try row.value(2), { try connection.run($0) }) else { continue }
            kinds.insert(kind)
            guard let path = path(realm) else { continue }
            let id: UUID = try row.value(3)
            let isCurrent: Bool = try row.value(6)
            let exists = unsafe isCurrent && row.withBytes(5) { unsafe $0 != nil }
            // A permission may be revoked here although its object's newer state is in a later page: the changes in
            // between must not be delivered.
            let change = LiveChunk.PermissionChange(kind: kind, id: id, exists: exists)
            guard isCurrent || change != nil else { continue }
            var (line, permissionChanges) = open.removeValue(forKey: realm) ?? (ObjectLine(path), [])
            if isCurrent { line.append(kind: kind, id: id, position: last, row: row, fieldsColumn: 5) }
            if let change { permissionChanges.append(change) }
            if exists, kind == .writeCheckpoint, let stored = WriteCheckpoint(try row.value(5, as: CanonicalJSON.self))
            {
                writeCheckpoints[realm, default: [:]][id] = stored.number
            }
            open[realm] = (line, permissionChanges)
            if line.isFull { take(realm, at: last) }
        }
        let isFull = results[1].count == countMax
        let reached = isFull ? last : max(last, counter.position)
        var (permissionsPosition, exceedsLimit) = (reached, false)
        if isFull, last > scanned {
            let ahead = try scanAhead(in: environment, after: last, on: &connection)
            (permissionsPosition, exceedsLimit) = (max(last, ahead.position), ahead.exceedsLimit)
            for (realm, change) in ahead.permissionChanges {
                guard let path = path(realm) else { continue }
                open[realm, default: (ObjectLine(path), [])].permissionChanges.append(change)
            }
        }
        for realm in open.keys.sorted() { take(realm, at: last) }
        return LivePage(
            counter: counter, position: reached, permissionsPosition: permissionsPosition, chunks: chunks, kinds: kinds,
            isFull: isFull, exceedsLimit: exceedsLimit)
    }

    /// Returns the permission changes in the rest of the change log, up to the counter, which is the end of a
    /// transaction.
    private static func scanAhead(
        in environment: EnvironmentID, after position: Int64, on connection: inout Connection
    ) throws -> (
        position: Int64, permissionChanges: [(realm: Int32, change: LiveChunk.PermissionChange)], exceedsLimit: Bool
    ) {
        // The counter is read first, so that the next statement sees everything up to it.
        let results = try connection.run([
            EnvironmentCounter.load(environment),
            """
            SELECT c.realm_id, c.kind, c.id, coalesce(NOT o.deleted, false)
            FROM (
                SELECT * FROM store.change WHERE environment_id = \(environment.rawValue) AND position > \(position)
                    AND kind = ANY (\(LiveChunk.PermissionChange.kinds))
                ORDER BY position LIMIT \(Int64(permissionChangeCountMax))
            ) c
            LEFT JOIN LATERAL (
                SELECT o.position, o.deleted FROM store.object o
                WHERE o.environment_id = \(environment.rawValue) AND o.realm_id = c.realm_id AND o.kind = c.kind
                    AND o.id = c.id
                OFFSET 0
            ) o ON o.position = c.position
            """,
        ])
        var permissionChanges: [(realm: Int32, change: LiveChunk.PermissionChange)] = []
        for row in results[1] {
            let change = LiveChunk.PermissionChange(
                kind: try row.value(1), id: try row.value(2), exists: try row.value(3))
            if let change { permissionChanges.append((try row.value(0), change)) }
        }
        let counter = try EnvironmentCounter(try counterRow(results[0]))
        return (counter.position, permissionChanges, results[1].count == permissionChangeCountMax)
    }
}
