import Essentials
import Model
import ObjectStore
import Postgres

/// What back ends were seen to hold of days so long ago that nobody compares them any more.
///
/// The rows are removed without a tombstone: nobody but services opens these realms, and a tombstone would say that the
/// back end no longer has the record. Only those go whose last change is below the compaction floor: it was published
/// so long ago that no reader comes to its event.
struct ObservationSweep: Sweep {
    /// Records removed in one part.
    private static let countMax: Int64 = 2_000

    let name = "seen records"
    let keep: Duration
    private var realms = RealmWalk(pathPrefix: "/seen/")

    init(keep: Duration) { self.keep = keep }

    mutating func step(on connection: inout Connection) throws -> SweptPart {
        guard let realm = try realms.current(on: &connection) else { return SweptPart(removedCount: 0, isLast: true) }
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
        if count < Int(Self.countMax) { realms.goOn() }
        return SweptPart(removedCount: count, isLast: false)
    }
}

/// Goes from realm to realm of all environments, in the order of their numbers.
struct RealmWalk: Sendable {
    typealias Place = (environment: EnvironmentID, number: Int32)

    let pathPrefix: String
    private var last: (environment: Int32, number: Int32) = (0, 0)
    private var place: Place?

    init(pathPrefix: String) { self.pathPrefix = pathPrefix }

    /// The realm to look at; `nil` after the last one, and then the first one again.
    mutating func current(on connection: inout Connection) throws -> Place? {
        if let place { return place }
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
        place = (EnvironmentID(rawValue: last.environment), last.number)
        return place
    }

    /// This realm is done with.
    mutating func goOn() { place = nil }
}
