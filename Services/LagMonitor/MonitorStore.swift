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

    /// Why keys of a group are parked: what their reasons have in common, which is how they begin.
    struct Reason: Equatable {
        let group: String
        let text: String
        let isDead: Bool
        let count: Int64
    }

    /// So many beginnings of reasons are told of each group, the most frequent ones; what is left is one more.
    static let reasonMax: Int64 = 10
    /// So many parked keys are looked at for their reasons.
    static let reasonKeyMax: Int64 = 100_000

    /// Rows: those of ``Reason``. A reason's beginning is from its first letter to where it tells of one key
    /// alone: a number, a name in quotes, an address, or what follows a colon; none of one that begins with a name.
    static let reasons: Statement = """
        WITH found AS (
            SELECT group_name, is_dead,
                rtrim(coalesce(substring(
                    reason from '^[^[:alpha:]''"]*((?:(?! ''|\\S*@)[^0-9:;"(<{/…]){1,80})'), '')) AS text
            FROM pipeline.parked LIMIT \(reasonKeyMax)
        ), counted AS (
            SELECT group_name, is_dead, text, count(*) AS count,
                row_number() OVER (PARTITION BY group_name ORDER BY count(*) DESC, text) AS rank
            FROM found GROUP BY group_name, is_dead, text
        )
        SELECT group_name, CASE WHEN rank <= \(reasonMax) THEN text ELSE 'others' END, is_dead, sum(count)::int8
        FROM counted GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
        """

    static func reasons(_ rows: Rows) throws(PostgresError) -> [Reason] {
        try rows.decode(String.self, String.self, Bool.self, Int64.self).map {
            Reason(group: $0, text: $1, isDead: $2, count: $3)
        }
    }

    /// What is written and not published.
    struct Behind: Equatable {
        struct Environment: Equatable {
            let name: String
            let positionCount: Int64
            /// How long ago the first of them was made; `nil` when it is gone meanwhile.
            let seconds: Double?
        }

        /// All environments whose changes are not all published, and their positions together.
        var environmentCount: Int64 = 0
        var positionCount: Int64 = 0
        /// Those that are furthest behind.
        var worst: [Environment] = []
    }

    /// Environments that are named at most.
    static let behindMax: Int64 = 500

    /// Rows: environment, positions, seconds or null; then of all environments how many, and their positions. An
    /// environment that the relay has never seen is behind by all of its positions.
    static let behind: Statement = """
        SELECT e.name, e.position - coalesce(r.position, 0), (
            SELECT extract(epoch FROM now() - c.changed_at)::float8 FROM store.change c
            WHERE c.environment_id = e.id AND c.position > coalesce(r.position, 0) ORDER BY c.position LIMIT 1),
            count(*) OVER (), (sum(e.position - coalesce(r.position, 0)) OVER ())::int8
        FROM realm.environment e LEFT JOIN realm.relay r ON r.environment_id = e.id
        WHERE e.position > coalesce(r.position, 0)
        ORDER BY 2 DESC LIMIT \(behindMax)
        """

    static func behind(_ rows: Rows) throws(PostgresError) -> Behind {
        var behind = Behind()
        for (name, positions, seconds, count, sum) in try rows.decode(
            String.self, Int64.self, Double?.self, Int64.self, Int64.self)
        {
            (behind.environmentCount, behind.positionCount) = (count, sum)
            behind.worst.append(Behind.Environment(name: name, positionCount: positions, seconds: seconds))
        }
        return behind
    }

    /// A back end that a group does not call for now: its circuit is open.
    struct OpenCircuit: Equatable {
        let environment: String
        let group: String
        /// Keys that wait for it.
        let keyCount: Int64
    }

    /// Open circuits that are named at most, those with the most keys.
    static let circuitMax: Int64 = 500

    /// Rows: those of ``OpenCircuit``.
    static let circuits: Statement = """
        SELECT e.name, p.group_name, count(*)
        FROM pipeline.parked p JOIN realm.environment e ON e.id = p.environment_id
        WHERE p.is_circuit AND NOT p.is_dead
        GROUP BY e.name, p.group_name ORDER BY count(*) DESC, e.name, p.group_name LIMIT \(circuitMax)
        """

    static func circuits(_ rows: Rows) throws(PostgresError) -> [OpenCircuit] {
        try rows.decode(String.self, String.self, Int64.self).map {
            OpenCircuit(environment: $0, group: $1, keyCount: $2)
        }
    }
}
