import Essentials
import Model
import ObjectStore
import Postgres

/// Removes the back ends' polled records of days that are too old to be compared.
///
/// The rows are removed without a tombstone: only services open these realms, and a tombstone would mean that the back
/// end no longer has the record. Only rows whose last change is below the compaction floor are removed: their events
/// are older than the retention that any consumer needs.
struct ObservationSweep: Sweep {
    /// Maximum number of records removed per step.
    private static let countMax: Int64 = 2_000

    let name = "polled records"
    let keep: Duration
    private var realms = RealmIterator(pathPrefix: "/seen/")

    init(keep: Duration) { self.keep = keep }

    mutating func step(on connection: inout Connection) throws -> SweepResult {
        guard let realm = try realms.current(on: &connection) else { return SweepResult(removedCount: 0, isLast: true) }
        let count = try connection.run(
            """
            DELETE FROM store.object WHERE (environment_id, realm_id, kind, id) IN (
                SELECT o.environment_id, o.realm_id, o.kind, o.id FROM store.object o
                WHERE o.environment_id = \(realm.environment.rawValue) AND o.realm_id = \(realm.number)
                    AND o.kind = \(Kind.seenRecord) AND NOT o.deleted
                    AND o.position <= (
                        SELECT compacted_position FROM realm.environment WHERE id = \(realm.environment.rawValue))
                    AND (o.fields::json->>'day') COLLATE "C"
                        < to_char(now() - make_interval(secs => \(keep.inSeconds)), 'YYYY-MM-DD')
                LIMIT \(Self.countMax) FOR UPDATE SKIP LOCKED)
            """
        ).affectedCount
        if count < Int(Self.countMax) { realms.advance() }
        return SweepResult(removedCount: count, isLast: false)
    }
}

/// Iterates over the realms of all environments in the order of their numbers.
struct RealmIterator: Sendable {
    typealias Position = (environment: EnvironmentID, number: Int32)

    let pathPrefix: String
    private var last: (environment: Int32, number: Int32) = (0, 0)
    private var selected: Position?

    init(pathPrefix: String) { self.pathPrefix = pathPrefix }

    /// Returns the current realm; `nil` after the last one, then starts over.
    mutating func current(on connection: inout Connection) throws -> Position? {
        if let selected { return selected }
        let rows = try connection.run(
            """
            SELECT r.environment_id, r.id
            FROM realm.realm r JOIN realm.environment e ON e.id = r.environment_id AND \(EnvironmentCounter.works)
            WHERE (r.environment_id, r.id) > (\(last.environment), \(last.number))
                AND starts_with(r.path, \(pathPrefix))
            ORDER BY r.environment_id, r.id LIMIT 1
            """)
        guard let next = try rows.first?.decode(Int32.self, Int32.self) else {
            last = (0, 0)
            return nil
        }
        last = next
        selected = (EnvironmentID(rawValue: last.environment), last.number)
        return selected
    }

    /// Proceeds to the next realm.
    mutating func advance() { selected = nil }
}
