import Postgres

/// The SQL of `lag-monitor`. It reads only.
enum MonitorStore {
    /// Parked keys of one group and topic, by what they wait for.
    struct Parked: Equatable {
        let group: String
        let topic: String
        /// Would be decided now, by a worker that has room for them.
        let dueCount: Int64
        /// For their time.
        let waitingCount: Int64
        /// For a back end that is away.
        let circuitCount: Int64
        /// For a person.
        let deadCount: Int64
    }

    /// Rows: those of ``Parked``. It reads all parked keys.
    static let parked: Statement = """
        SELECT group_name, topic,
            count(*) FILTER (WHERE NOT is_dead AND NOT is_circuit AND next_at <= now()),
            count(*) FILTER (WHERE NOT is_dead AND NOT is_circuit AND next_at > now()),
            count(*) FILTER (WHERE NOT is_dead AND is_circuit),
            count(*) FILTER (WHERE is_dead)
        FROM pipeline.parked GROUP BY group_name, topic ORDER BY group_name, topic
        """

    static func parked(_ rows: Rows) throws(PostgresError) -> [Parked] {
        try rows.decode(String.self, String.self, Int64.self, Int64.self, Int64.self, Int64.self).map {
            Parked(group: $0, topic: $1, dueCount: $2, waitingCount: $3, circuitCount: $4, deadCount: $5)
        }
    }

    /// An environment whose changes are not all published.
    struct Behind: Equatable {
        let environment: String
        let positionCount: Int64
        /// How long ago the first of them was made; `nil` when it is gone meanwhile.
        let seconds: Double?
    }

    /// Environments that are told of at most: those that are furthest behind.
    static let behindMax: Int64 = 500

    /// Rows: those of ``Behind``. An environment that the relay has never seen is behind by all of its positions.
    static let behind: Statement = """
        SELECT e.name, e.position - coalesce(r.position, 0), (
            SELECT extract(epoch FROM now() - c.changed_at)::float8 FROM store.change c
            WHERE c.environment_id = e.id AND c.position > coalesce(r.position, 0) ORDER BY c.position LIMIT 1)
        FROM realm.environment e LEFT JOIN realm.relay r ON r.environment_id = e.id
        WHERE e.position > coalesce(r.position, 0)
        ORDER BY 2 DESC LIMIT \(behindMax)
        """

    static func behind(_ rows: Rows) throws(PostgresError) -> [Behind] {
        try rows.decode(String.self, Int64.self, Double?.self).map {
            Behind(environment: $0, positionCount: $1, seconds: $2)
        }
    }
}
