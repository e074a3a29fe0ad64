import Essentials
import Kafka
import Model
import Postgres

/// The SQL of `pipeline.parked`: one row per (group, key). A key is an event's whole subject: ids are the devices' own
/// choice, so objects of two realms may have the same.
enum ParkedKeys {
    struct Parking: Equatable, Sendable {
        let subject: EventSubject
        let partition: TopicPartition
        let reason: String
        let isDead: Bool
        let isCircuit: Bool
        let attemptCount: Int
        let wait: Duration
        let decision: Int
        /// What goes on when it is tried again.
        var trace: TraceContext?
    }

    struct Due: Equatable, Sendable {
        let environment: EnvironmentID
        let subject: EventSubject
        let partition: TopicPartition
        let attemptCount: Int
        var trace: TraceContext?
    }

    static let reasonLengthMax = 2_000
    /// Rows have a trace from this version on.
    static let schemaOldest: Int32 = 27

    /// Parks keys whose decision stands. A row that is there is replaced, but for one that a ``Cascade`` has made due
    /// and nobody has taken since, in the same transaction or in another one: what made it due the decision may not
    /// have seen.
    static func park(_ parkings: [Parking], group: String, environment: EnvironmentID) -> Statement {
        var traces = BinaryArray(of: String.self)
        for parking in parkings { traces.append(parking.trace?.text) }
        return """
            INSERT INTO pipeline.parked AS p (group_name, environment_id, key, topic, partition, subject, position,
                reason, is_dead, is_circuit, attempts, next_at, traceparent)
            SELECT \(group), \(environment.rawValue), i.key, i.topic, i.partition, i.key, 0, i.reason, i.is_dead,
                i.is_circuit, i.attempts, now() + make_interval(secs => i.wait), i.traceparent
            FROM unnest(\(parkings.map(\.subject.description)), \(parkings.map(\.partition.topic)),
                \(parkings.map(\.partition.partition)),
                \(parkings.map { $0.reason.prefix(scalars: reasonLengthMax) }), \(parkings.map(\.isDead)),
                \(parkings.map(\.isCircuit)), \(parkings.map { Int32($0.attemptCount) }),
                \(parkings.map { $0.wait.inSeconds }), \(parkings.map { Int32($0.decision) }), \(traces))
                AS i(key, topic, partition, reason, is_dead, is_circuit, attempts, wait, decision, traceparent)
            WHERE i.decision <> ALL ((SELECT realm.missed())::int[])
            ORDER BY i.key
            ON CONFLICT (group_name, environment_id, key) DO UPDATE SET
                topic = excluded.topic, partition = excluded.partition,
                reason = excluded.reason, is_dead = excluded.is_dead, is_circuit = excluded.is_circuit,
                attempts = excluded.attempts, next_at = excluded.next_at, traceparent = excluded.traceparent,
                parked_at = CASE WHEN p.attempts < excluded.attempts THEN p.parked_at ELSE now() END
            WHERE p.is_dead OR p.next_at <> p.parked_at
            """
    }

    /// Removes the rows of keys that are done. They are found by their whole keys (`LATERAL … OFFSET 0`), whatever the
    /// planner knows of an environment with many. One that is taken again in the same moment may stay: it comes again.
    /// So does one that is due: it was put there, or made due, since the key was taken (``Cascade``), which the
    /// decision may not have seen. That is asked of the row as it is when it is removed too: somebody may have held it.
    static func release(_ keys: [(key: String, decision: Int)], group: String, environment: EnvironmentID) -> Statement
    {
        """
        DELETE FROM pipeline.parked WHERE (is_dead OR next_at > clock_timestamp()) AND ctid = ANY (ARRAY(
            SELECT p.ctid
            FROM unnest(\(keys.map(\.key)), \(keys.map { Int32($0.decision) })) AS i(key, decision)
            CROSS JOIN LATERAL (
                SELECT p.ctid FROM pipeline.parked p
                WHERE p.group_name = \(group) AND p.environment_id = \(environment.rawValue) AND p.key = i.key
                    AND (p.is_dead OR p.next_at > clock_timestamp())
                OFFSET 0
            ) p
            WHERE i.decision <> ALL ((SELECT realm.missed())::int[])))
        """
    }

    // While the planner believes that there are few rows, it may read all of an environment's and sort them, and look
    // at all of them again for each that was found. So it may not sort here, where one index has the order, and what
    // is found is locked and then changed where it lies. One that somebody changes in that moment comes the next time.

    /// Has the statements after it, in the same transaction, read in the order of an index.
    private static let inOrder: Statement = "SELECT set_config('enable_sort', 'off', true)"

    /// Takes keys that are due in the partitions a worker has, and keeps them from being taken again for `lease`: of
    /// each environment so many that a backlog of one is in nobody else's way, and of all those due for longest.
    ///
    /// - Returns: Also the environments that have parked keys, dead ones too.
    static func takeDue(
        _ request: DueRequest, group: String, partitions: Set<TopicPartition>, lease: Duration,
        on connection: inout Connection
    ) throws(PostgresError) -> (due: [Due], environments: Set<EnvironmentID>) {
        let answers = try connection.run([
            inOrder, takeDue(request, group: group, partitions: Array(partitions), lease: lease),
            environments(group: group),
        ])
        return (try due(answers[1]), Set(try answers[2].decode(EnvironmentID.self)))
    }

    private static func takeDue(
        _ request: DueRequest, group: String, partitions: [TopicPartition], lease: Duration
    ) -> Statement {
        """
        WITH RECURSIVE e(id) AS (
            (SELECT environment_id FROM pipeline.parked WHERE group_name = \(group) AND NOT is_dead
                ORDER BY environment_id LIMIT 1)
            UNION ALL
            SELECT (
                SELECT n.environment_id FROM pipeline.parked n
                WHERE n.group_name = \(group) AND NOT n.is_dead AND n.environment_id > e.id
                ORDER BY n.environment_id LIMIT 1)
            FROM e WHERE e.id IS NOT NULL
        ), d AS MATERIALIZED (
            SELECT l.place FROM e CROSS JOIN LATERAL (
                SELECT q.ctid AS place, q.next_at FROM pipeline.parked q
                WHERE q.group_name = \(group) AND q.environment_id = e.id AND NOT q.is_dead AND q.next_at <= now()
                    AND (q.topic, q.partition) IN (
                        SELECT * FROM unnest(\(partitions.map(\.topic)), \(partitions.map(\.partition))))
                ORDER BY q.next_at
                LIMIT coalesce(
                    (SELECT x.count_max
                    FROM unnest(
                        \(request.exceptions.map(\.key.rawValue)), \(request.exceptions.map { Int64($0.value) }))
                        AS x(id, count_max)
                    WHERE x.id = e.id), \(Int64(request.countMax)))
                FOR UPDATE SKIP LOCKED
            ) l
            ORDER BY l.next_at LIMIT \(Int64(request.roomMax))
        )
        UPDATE pipeline.parked p SET next_at = now() + make_interval(secs => \(lease.inSeconds))
        WHERE p.ctid = ANY (ARRAY(SELECT place FROM d))
        RETURNING p.environment_id, p.subject, p.topic, p.partition, p.attempts, p.traceparent
        """
    }

    /// Environments that have parked keys, dead ones too, one row each: found by an index, however many keys there are.
    private static func environments(group: String) -> Statement {
        """
        WITH RECURSIVE e(id) AS (
            (SELECT environment_id FROM pipeline.parked WHERE group_name = \(group)
                ORDER BY environment_id LIMIT 1)
            UNION ALL
            SELECT (
                SELECT n.environment_id FROM pipeline.parked n
                WHERE n.group_name = \(group) AND n.environment_id > e.id
                ORDER BY n.environment_id LIMIT 1)
            FROM e WHERE e.id IS NOT NULL
        )
        SELECT id FROM e WHERE id IS NOT NULL
        """
    }

    /// Has keys come back before their time whose calls found no room: there is some now.
    ///
    /// - Returns: How many.
    static func hasten(
        group: String, environment: EnvironmentID, partitions: Set<TopicPartition>, countMax: Int,
        on connection: inout Connection
    ) throws(PostgresError) -> Int {
        let ordered = Array(partitions)
        return try connection.run([
            inOrder,
            """
            WITH d AS MATERIALIZED (
                SELECT ctid AS place FROM pipeline.parked
                WHERE group_name = \(group) AND environment_id = \(environment.rawValue) AND NOT is_dead
                    AND next_at > now() AND reason = \(ParkCause.noRoom)
                    AND (topic, partition) IN (
                        SELECT * FROM unnest(\(ordered.map(\.topic)), \(ordered.map(\.partition))))
                ORDER BY next_at LIMIT \(Int64(countMax)) FOR UPDATE SKIP LOCKED
            )
            UPDATE pipeline.parked SET next_at = now() WHERE ctid = ANY (ARRAY(SELECT place FROM d))
            """,
        ])[1].affectedCount
    }

    private static func due(_ rows: Rows) throws(PostgresError) -> [Due] {
        var due: [Due] = []
        for (environment, text, topic, partition, attempts, trace) in try rows.decode(
            EnvironmentID.self, String.self, String.self, Int32.self, Int32.self, String?.self)
        {
            guard let subject = EventSubject(text) else { continue }
            due.append(
                Due(
                    environment: environment, subject: subject,
                    partition: TopicPartition(topic: topic, partition: partition), attemptCount: Int(attempts),
                    trace: trace.flatMap { TraceContext($0) }))
        }
        return due
    }

    /// A message that nothing can be made of: parked dead under its place, for a person.
    static func poison(_ message: Message, reason: String, group: String) -> Statement {
        let place = "\(message.topic)/\(message.partition)/\(message.offset)"
        return """
            INSERT INTO pipeline.parked (group_name, environment_id, key, topic, partition, subject, position, reason,
                is_dead, is_circuit, attempts, next_at)
            VALUES (\(group), 0, \(place), \(message.topic), \(message.partition), \(place), 0, \(reason), true, false,
                0, now())
            ON CONFLICT (group_name, environment_id, key) DO NOTHING
            """
    }
}
