import Access
import FoundationEssentials
import Model
import NIOCore
import ObjectStore
import Postgres
import ServiceRuntime

/// A page of a realm's download, as lines ready to be sent.
struct DownloadPage: Sendable {
    let counter: EnvironmentCounter
    let lines: [ByteBuffer]
    let next: Progress.Download
    let isLast: Bool
    /// Whether the caller may still read the realm, after what was read here.
    let isPermitted: Bool
    /// How many objects to ask for next, by the size of these.
    let countNext: Int

    private static let bytesWanted = 1 << 20

    /// Reads one page. No snapshot is held afterwards.
    static func read(
        _ realm: OpenRealm, _ download: Progress.Download, in environment: EnvironmentID, generation: Int64,
        count: Int, countMax: Int, access: AccessReader, on connection: inout Connection
    ) throws -> DownloadPage {
        // The floor is read after the page: tombstones go only after it has moved. So are the permissions.
        let answers = try connection.run(
            [
                Feed.page(
                    of: realm.number, in: environment, after: download.key.map { ($0.kind, $0.id) },
                    changedAfter: download.base, includingTombstones: download.base > 0, countMax: count),
                EnvironmentCounter.load(environment),
            ] + access.statements)
        let counter = try EnvironmentCounter(try firstRow(answers[1]))
        var next = download
        var lines: [ByteBuffer] = []
        var line = ObjectLine(realm.path)
        var bytes = 0
        let rows = answers[0]
        for index in 0..<rows.count {
            let row = rows[index]
            let kind: Kind = try row.value(1)
            let id: UUID = try row.value(2)
            let position: Int64 = try row.value(3)
            // What changed since the download began comes with the catching up, and is not to come twice.
            if position <= download.start {
                line.append(kind: kind, id: id, position: position, row: row, fieldsColumn: 5)
            }
            next.key = Cursor.Key(kind: kind, id: id)
            if line.isFull || index == rows.count - 1 && !line.isEmpty {
                let cursor = Cursor(
                    generation: generation, start: download.start, position: download.base, key: next.key)
                lines.append(line.take(cursor))
                bytes += lines.last?.readableBytes ?? 0
            }
        }
        let wanted = bytes == 0 ? countMax : Self.bytesWanted / max(bytes / rows.count, 1)
        return DownloadPage(
            counter: counter, lines: lines, next: next, isLast: rows.count < count,
            isPermitted: try access.state(answers[2...]).mayRead(realm.path),
            countNext: min(max(wanted, 16), countMax))
    }
}

/// One snapshot's view of what is new for a device: permissions, counter and a page of the change log.
struct ChangePage: Sendable {
    let counter: EnvironmentCounter
    let access: AccessState
    /// Lines of the realms, and how far each has got with them.
    var lines: [ByteBuffer] = []
    /// The change log was read up to here.
    var position: Int64
    /// Whether there may be more; then the snapshot's counter is not reached yet.
    var isFull = false
    /// Realms that cannot go on from where they are were left alone: the caller looks at the counter.
    var isRead = false

    static func read(
        _ realms: [OpenRealm], access: AccessReader, in environment: EnvironmentID, limits: GatewayLimits,
        on connection: inout Connection
    ) throws -> ChangePage {
        try connection.transaction(.snapshot) { transaction in
            let answers = try transaction.run([EnvironmentCounter.load(environment)] + access.statements)
            let counter = try EnvironmentCounter(try firstRow(answers[0]))
            var page = ChangePage(
                counter: counter, access: try access.state(answers[1...]), position: counter.position)
            var held: [Int32: Int64] = [:]
            for realm in realms {
                guard case .whole(let position) = realm.progress, realm.progress.isGood(for: counter),
                    counter.position - position <= limits.catchUpCountMax
                else { return page }
                held[realm.number] = position
            }
            page.isRead = true
            guard let first = held.values.min(), first < counter.position else { return page }
            let rows = try transaction.run(
                changes(in: environment, realms: realms.map(\.number), after: first, countMax: limits.changeCountMax))
            try page.fill(rows, realms, held, countMax: limits.changeCountMax)
            return page
        }
    }

    /// - Parameter held: Up to which position the device holds each realm: what it has does not come again.
    private mutating func fill(
        _ rows: Rows, _ realms: [OpenRealm], _ held: [Int32: Int64], countMax: Int
    ) throws {
        var open = Dictionary(uniqueKeysWithValues: realms.map { ($0.number, ObjectLine($0.path)) })
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
            guard let kind = Kind(number: try row.value(1)) else { continue }
            open[realm]?.append(kind: kind, id: try row.value(2), position: position, row: row, fieldsColumn: 5)
            if open[realm]?.isFull == true { take(realm, into: &lines) }
        }
        for realm in realms where open[realm.number]?.isEmpty == false { take(realm.number, into: &lines) }
    }

    /// The change log of some realms. A pointer whose object has moved on has `is_current` false: it only tells how far
    /// the page reaches.
    ///
    /// `IS TRUE` keeps the list of realms out of the plan's joins: it is hashed once and looked up for each pointer. As
    /// a join, or as `= ANY` in a plan for any parameters, each pointer was compared with all of them.
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

/// The row of an environment's counter.
func firstRow(_ rows: Rows) throws(PostgresError) -> Row {
    guard rows.count > 0 else { throw PostgresError(sqlState: "P0002", message: "there is no such environment") }
    return rows[0]
}
