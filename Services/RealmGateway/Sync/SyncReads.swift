import Access
import FoundationEssentials
import Model
import NIOCore
import ObjectStore
import Postgres

/// A page of a realm's download, as encoded lines.
struct DownloadPage: Sendable {
    let counter: EnvironmentCounter
    let lines: [ByteBuffer]
    let next: SyncProgress.Download
    let isLast: Bool
    /// Whether the caller may still read the realm after this page.
    let isPermitted: Bool
    /// Number of objects of the next page, derived from the size of these.
    let countNext: Int

    private static let pageBytesTarget = 1 << 20

    /// Reads one page, without a transaction.
    static func read(
        _ realm: OpenRealm, _ download: SyncProgress.Download, in environment: EnvironmentID, generation: Int64,
        format: LineFormat, count: Int, countMax: Int, access: AccessReader, names: KindNames,
        on connection: inout Connection
    ) throws -> DownloadPage {
        // The compaction floor is read after the page, because tombstones are removed only after it has moved; so are
        // the permissions.
        let results = try connection.run(
            [
                Feed.page(
                    of: realm.number, in: environment, after: download.key.map { ($0.kind, $0.id) },
                    changedAfter: download.base, includingTombstones: download.base > 0, countMax: count),
                EnvironmentCounter.load(environment),
            ] + access.statements)
        let counter = try EnvironmentCounter(try counterRow(results[1]))
        var next = download
        var lines: [ByteBuffer] = []
        // What a cut download left may have objects that were deleted meanwhile, without tombstones for this device.
        let clears = format != .device && download.base == 0 && download.key == nil
        var line = ObjectLine(realm.path, format, clears: clears)
        var bytes = 0
        let rows = results[0]
        let isLast = rows.count < count
        var cursor: Cursor {
            Cursor(generation: generation, start: download.start, position: download.base, key: next.key)
        }
        func end(_ finished: ByteBuffer) {
            lines.append(finished)
            bytes += finished.readableBytes
        }
        for index in 0..<rows.count {
            let row = rows[index]
            guard let kind = try names.kind(try row.value(1), { try connection.run($0) }) else { continue }
            let id: UUID = try row.value(2)
            let position: Int64 = try row.value(3)
            // Changes since the start of the download follow from the change log, and are not sent twice.
            if position <= download.start {
                line.append(kind: kind, id: id, position: position, row: row, fieldsColumn: 5)
            }
            next.key = Cursor.Key(kind: kind, id: id)
            if line.isFull, index < rows.count - 1 { end(line.take(cursor, resume: download.base)) }
        }
        // In the bucket format the last line marks the end of the download, also without objects.
        if !line.isEmpty || format != .device && (isLast || line.clears) {
            end(line.take(cursor, resume: isLast ? download.start : download.base))
        }
        let target = bytes == 0 ? countMax : Self.pageBytesTarget / max(bytes / max(rows.count, 1), 1)
        return DownloadPage(
            counter: counter, lines: lines, next: next, isLast: isLast,
            isPermitted: try access.state(results[2...]).mayRead(realm.path),
            countNext: min(max(target, 16), countMax))
    }
}

/// New data for a device, from one snapshot: permissions, counter and a page of the change log.
struct ChangePage: Sendable {
    let counter: EnvironmentCounter
    let access: AccessState
    /// The client's write checkpoint, in the bucket format.
    var writeCheckpoint: Int64?
    /// The lines of the realms.
    var lines: [ByteBuffer] = []
    /// The change log was read up to here.
    var position: Int64
    /// Whether there may be more before the snapshot's counter.
    var isFull = false
    /// Whether the change log was read. False if a realm cannot continue from its position; the caller then compares it
    /// with the counter.
    var isRead = false

    static func read(
        _ realms: [OpenRealm], access: AccessReader, sent: SentRealm?, format: LineFormat,
        in environment: EnvironmentID, limits: GatewayLimits, names: KindNames, on connection: inout Connection
    ) throws -> ChangePage {
        try connection.transaction(.snapshot) { transaction in
            let results = try transaction.run(
                [EnvironmentCounter.load(environment)] + access.statements
                    + (sent.map { [$0.load(in: environment)] } ?? []))
            let counter = try EnvironmentCounter(try counterRow(results[0]))
            var page = ChangePage(
                counter: counter, access: try access.state(results[1..<(1 + access.statements.count)]),
                position: counter.position)
            if let sent, let rows = results.last {
                page.writeCheckpoint = WriteCheckpoint(try sent.object(rows)?.fields)?.number
            }
            var held: [Int32: Int64] = [:]
            for realm in realms {
                guard case .changeLog(let position) = realm.progress, realm.progress.isValid(for: counter),
                    counter.position - position <= limits.catchUpCountMax
                else { return page }
                held[realm.number] = position
            }
            page.isRead = true
            guard let first = held.values.min(), first < counter.position else { return page }
            let rows = try transaction.run(
                changes(in: environment, realms: realms.map(\.number), after: first, countMax: limits.changeCountMax))
            try page.fill(rows, realms, held, format, countMax: limits.changeCountMax) { number in
                try names.kind(number) { try transaction.run($0) }
            }
            return page
        }
    }

    /// - Parameter held: The position up to which the device has each realm; earlier changes are not sent again.
    private mutating func fill(
        _ rows: Rows, _ realms: [OpenRealm], _ held: [Int32: Int64], _ format: LineFormat, countMax: Int,
        kind: (Int16) throws -> Kind?
    ) throws {
        var open = Dictionary(uniqueKeysWithValues: realms.map { ($0.number, ObjectLine($0.path, format)) })
        var last: [Int32: Int64] = [:]
        func take(_ realm: Int32, into lines: inout [ByteBuffer]) {
            guard let position = last[realm] else { return }
            let cursor = Cursor(generation: counter.generation, start: position, position: position)
            if let line = open[realm]?.take(cursor) { lines.append(line) }
        }
        isFull = rows.count == countMax
        for row in rows {
            let realm: Int32 = try row.value(0)
            let position: Int64 = try row.value(3)
            if isFull { self.position = position }
            guard try row.value(4, as: Bool.self), position > held[realm] ?? 0 else { continue }
            last[realm] = position
            guard let kind = try kind(try row.value(1)) else { continue }
            open[realm]?.append(kind: kind, id: try row.value(2), position: position, row: row, fieldsColumn: 5)
            if open[realm]?.isFull == true { take(realm, into: &lines) }
        }
        for realm in realms where open[realm.number]?.isEmpty == false { take(realm.number, into: &lines) }
    }

    /// Reads the change log of some realms. An entry whose object has changed again has `is_current` false: it only
    /// marks the page's position.
    ///
    /// `IS TRUE` keeps the list of realms out of the plan's joins: it is hashed once and looked up for each entry. As a
    /// join, or as `= ANY` in a generic plan, each entry was compared with all of them.
    private static func changes(
        in environment: EnvironmentID, realms: [Int32], after position: Int64, countMax: Int
    ) -> Statement {
        """
        SELECT c.realm_id, c.kind, c.id, c.position, o.position IS NOT NULL AS is_current, o.fields
        FROM (
            SELECT * FROM store.change
            WHERE environment_id = \(environment.rawValue) AND position > \(position)
                AND (realm_id IN (SELECT unnest(\(realms)))) IS TRUE
            ORDER BY position LIMIT \(Int64(countMax))
        ) c
        LEFT JOIN LATERAL (
            SELECT o.* FROM store.object o
            WHERE o.environment_id = \(environment.rawValue) AND o.realm_id = c.realm_id AND o.kind = c.kind
                AND o.id = c.id
            OFFSET 0
        ) o ON o.position = c.position
        ORDER BY c.position
        """
    }
}

/// Returns the row of an environment's counter.
func counterRow(_ rows: Rows) throws(PostgresError) -> Row {
    guard rows.count > 0 else { throw PostgresError(sqlState: "P0002", message: "the environment does not exist") }
    return rows[0]
}
