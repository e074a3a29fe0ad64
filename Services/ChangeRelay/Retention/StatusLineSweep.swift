import Essentials
import FoundationEssentials
import Model
import ObjectStore
import Postgres

/// Deletes lines of an entry's status log beyond its maximum: the oldest become tombstones, which devices receive as
/// usual. The newest line, which has the status, is never among them.
struct StatusLineSweep: Sweep {
    /// Maximum number of lines deleted in one transaction.
    private static let batchCountMax = 500
    /// Maximum number of lines read of a realm per step.
    private static let pageCountMax: Int64 = 5_000

    let name = "status lines"
    let keepCountMax: Int
    private var realms = RealmIterator(pathPrefix: "/users/")

    init(keepCountMax: Int) { self.keepCountMax = keepCountMax }

    struct Line: Equatable {
        let id: UUID
        let position: Int64
        let entry: String
        /// Milliseconds since 1970.
        let time: Int64
    }

    /// Returns the lines beyond the maximum, never an entry's newest one.
    static func excess(_ lines: [Line], keepCountMax: Int) -> [Line] {
        Dictionary(grouping: lines, by: \.entry).values.flatMap { lines in
            lines.sorted { ($0.time, $0.position) > ($1.time, $1.position) }.dropFirst(keepCountMax)
        }
    }

    mutating func step(on connection: inout Connection) throws -> SweepResult {
        guard let realm = try realms.current(on: &connection) else { return SweepResult(removedCount: 0, isLast: true) }
        let lines = try connection.run(excessive(in: realm)).map { try Line($0) }
        let excess = Self.excess(lines, keepCountMax: keepCountMax).prefix(Self.batchCountMax)
        let isRest = excess.count < Self.batchCountMax && lines.count < Int(Self.pageCountMax)
        if isRest || excess.isEmpty { realms.advance() }
        if excess.isEmpty { return SweepResult(removedCount: 0, isLast: false) }
        var batch = WriteBatch(environment: realm.environment)
        for (decision, line) in excess.enumerated() {
            let key = ObjectKey(realm: realm.number, kind: .timeEntryStatus, id: line.id)
            batch.expect(key, at: line.position, decision: decision)
            batch.delete(key, decision: decision)
        }
        do throws(PostgresError) {
            let outcome = try batch.commit(on: &connection)
            return SweepResult(removedCount: excess.count - outcome.conflicts.count, isLast: false)
        } catch {
            // Skip an environment that is write-blocked for a move, or has moved.
            guard error.isLocked || error.isDataError else { throw error }
            if !isRest { realms.advance() }
            return SweepResult(removedCount: 0, isLast: false)
        }
    }

    /// Reads the lines of entries with more than the maximum. Rows: id, position, entry, timestamp.
    private func excessive(in realm: RealmIterator.Position) -> Statement {
        """
        SELECT id, position, entry, timestamp FROM (
            SELECT id, position, lower(fields::json->>'entry') AS entry, fields::json->>'timestamp' AS timestamp,
                count(*) OVER (PARTITION BY lower(fields::json->>'entry')) AS n
            FROM store.object
            WHERE environment_id = \(realm.environment.rawValue) AND realm_id = \(realm.number)
                AND kind = \(Kind.timeEntryStatus) AND NOT deleted
        ) l
        WHERE n > \(Int64(keepCountMax)) ORDER BY entry, id LIMIT \(Self.pageCountMax)
        """
    }
}

extension StatusLineSweep.Line {
    /// Reads id, position, entry and timestamp. A line without a valid time counts as the oldest.
    fileprivate init(_ row: Row) throws(PostgresError) {
        let (id, position, entry, time) = try row.decode(UUID.self, Int64.self, String?.self, String?.self)
        self.init(
            id: id, position: position, entry: entry ?? "",
            time: time.flatMap { Timestamp($0) }?.millisecondsSinceEpoch ?? .min)
    }
}
