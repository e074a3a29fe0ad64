import Essentials
import FoundationEssentials
import KeyedWorker
import Model
import ObjectStore
import Postgres

/// The SQL of `location-fan-out`.
enum LocationStore {
    /// The existence of objects of `/common`, without their fields. Rows: id, position, whether it is a tombstone.
    static func presences(
        of kind: Kind, among ranges: [ClosedRange<UUID>], common: Int32, in environment: EnvironmentID
    ) -> Statement {
        """
        SELECT o.id, o.position, o.deleted
        FROM unnest(\(ranges.map(\.lowerBound)), \(ranges.map(\.upperBound))) AS i(low, high)
        CROSS JOIN LATERAL (
            SELECT * FROM store.object o
            WHERE o.environment_id = \(environment.rawValue) AND o.realm_id = \(common) AND o.kind = \(kind)
                AND o.id BETWEEN i.low AND i.high
            OFFSET 0
        ) o
        """
    }

    /// People's memberships, including tombstones. Rows: as `RealmObject` reads them.
    static func memberships(
        among ranges: [ClosedRange<UUID>], common: Int32, in environment: EnvironmentID
    ) -> Statement {
        """
        SELECT o.realm_id, o.kind, o.id, o.position, o.edit_position, o.fields
        FROM unnest(\(ranges.map(\.lowerBound)), \(ranges.map(\.upperBound))) AS i(low, high)
        CROSS JOIN LATERAL (
            SELECT * FROM store.object o
            WHERE o.environment_id = \(environment.rawValue) AND o.realm_id = \(common)
                AND o.kind = \(Kind.membership) AND o.id BETWEEN i.low AND i.high
            OFFSET 0
        ) o
        """
    }

    /// The existing realms of teams, by the ends of the teams' ids. Rows: number, path.
    static func teamRealms(of ends: some Sequence<String>, in environment: EnvironmentID) -> Statement {
        """
        SELECT r.id, r.path
        FROM unnest(\(Array(ends))) AS i(team) CROSS JOIN LATERAL (
            SELECT * FROM realm.realm r
            WHERE r.environment_id = \(environment.rawValue) AND right(r.path, 17) = i.team
                AND starts_with(r.path, '/teams/')
            OFFSET 0
        ) r
        """
    }

    /// Requests that these people's locations are reprocessed.
    static func cascade(
        to members: [(subject: EventSubject, decision: Int)], in environment: EnvironmentID
    ) -> Statement {
        Cascade.due(
            group: Services.locationFanOut.name, topic: Topics.location, in: environment,
            """
            SELECT i.key, i.id, 'a team of the person was added, changed or deleted', i.decision
            FROM unnest(\(members.map(\.subject.description)), \(members.map(\.subject.id)),
                \(members.map { Int32($0.decision) })) AS i(key, id, decision)
            """)
    }
}
