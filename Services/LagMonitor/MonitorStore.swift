import ObjectStore
import Postgres

extension Limits {
    /// The limits of the sessions of the monitor, its probe and its console: below the stall detection of workers. The
    /// console reports `statementMax`, the timeout of one statement, in an error.
    static var monitor: Limits {
        var limits = Limits(lockMax: .seconds(2))
        (limits.statementMax, limits.tcpUserMax) = (.seconds(5), .seconds(5))
        return limits
    }
}

/// The SQL of `lag-monitor`. Reads only.
enum MonitorStore {
    /// Deferred keys of one group and topic, by state.
    struct Parked: Equatable {
        let group: String
        let topic: String
        /// Due: waiting for a worker with capacity.
        let dueCount: Int64
        /// Deferred until their retry time.
        let waitingCount: Int64
        /// Waiting for an unavailable back end.
        let circuitCount: Int64
        /// Dead-lettered: need manual action.
        let deadCount: Int64
    }

    /// Rows: those of ``Parked``. Reads all deferred keys.
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

    /// Deferred keys of a group, by the common beginning of their reasons. Encoded in the console's API: the keys are
    /// part of it.
    struct Reason: Equatable, Encodable {
        let group: String
        let text: String
        let isDead: Bool
        let count: Int64
    }

    /// Maximum number of reasons per group; the most frequent ones. The others are summed.
    static let reasonMax: Int64 = 10
    /// Maximum number of deferred keys that are read for their reasons.
    static let reasonKeyMax: Int64 = 100_000
    /// Maximum number of different reasons per group that are cut, the most frequent ones, before they are grouped.
    /// Each takes up to 40 µs. The keys of the others count among the other reasons.
    static let reasonTextMax: Int64 = 2_000
    /// Length from which on a reason is ignored.
    private static let reasonLengthMax: Int32 = 200

    /// Rows: those of ``Reason``. A reason is cut from its first letter to the first value of a single key: a number, a
    /// quoted name, an address, or the text after a colon. A reason that begins with a name or an address becomes
    /// empty.
    static let reasons: Statement = """
        WITH texts AS (
            SELECT group_name, is_dead, reason, count(*) AS count,
                row_number() OVER (PARTITION BY group_name ORDER BY count(*) DESC, reason) AS rank
            FROM (
                SELECT group_name, is_dead, left(reason, \(reasonLengthMax)) AS reason
                FROM pipeline.parked LIMIT \(reasonKeyMax)
            ) p
            GROUP BY group_name, is_dead, reason
        ), shortened AS (
            SELECT group_name, is_dead, count, CASE WHEN rank <= \(reasonTextMax) THEN rtrim(coalesce(substring(
                split_part(regexp_replace(reason, '\\S*@.*$', ''), ' ''', 1)
                from '^[^[:alpha:]''"]*([^0-9:;"(<{/…]{1,80})'), '')) ELSE 'others' END AS text
            FROM texts
        ), counted AS (
            SELECT group_name, is_dead, text, sum(count) AS count,
                row_number() OVER (PARTITION BY group_name ORDER BY sum(count) DESC, text) AS rank
            FROM shortened GROUP BY group_name, is_dead, text
        )
        SELECT group_name, CASE WHEN rank <= \(reasonMax) THEN text ELSE 'others' END, is_dead, sum(count)::int8
        FROM counted GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
        """

    static func reasons(_ rows: Rows) throws(PostgresError) -> [Reason] {
        try rows.decode(String.self, String.self, Bool.self, Int64.self).map {
            Reason(group: $0, text: $1, isDead: $2, count: $3)
        }
    }

    /// Changes that the relay has not published. Encoded in the console's API: the keys are part of it.
    struct Behind: Equatable, Encodable {
        struct Environment: Equatable, Encodable {
            let name: String
            let positionCount: Int64
            /// Age of the first unpublished change; `nil` if it was removed meanwhile.
            let seconds: Double?
        }

        /// Number of environments with unpublished changes, and the sum of their positions.
        var environmentCount: Int64 = 0
        var positionCount: Int64 = 0
        /// The environments with the most unpublished positions.
        var worst: [Environment] = []
    }

    /// Maximum number of environments.
    static let behindMax: Int64 = 500

    /// Rows: environment, positions, seconds or null; then the number of all environments, and their positions. An
    /// environment without a relay row is behind by all of its positions.
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

    /// A back end whose circuit is open in a group. Encoded in the console's API: the keys are part of it.
    struct OpenCircuit: Equatable, Encodable {
        let environment: String
        let group: String
        /// Number of keys that wait for it.
        let keyCount: Int64
    }

    /// Maximum number of open circuits; those with the most keys.
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

    /// Rows: ``WALArchive/waitSeconds``; none if `archive_mode` is off.
    static let archiveAge: Statement =
        "SELECT \(WALArchive.waitSeconds) FROM pg_stat_archiver WHERE \(WALArchive.isOn)"
}
