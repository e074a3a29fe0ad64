import Essentials
import Kafka
import Model
import Postgres

/// The SQL of `pipeline.parked`: one row per (group, key). A key is an event's whole subject, since devices choose ids,
/// and objects of two realms may have the same.
enum DeferredKeys {
    struct Deferral: Equatable, Sendable {
        let subject: EventSubject
        let partition: TopicPartition
        let reason: String
        let isDead: Bool
        let isCircuit: Bool
        let attemptCount: Int
        let wait: Duration
        let decision: Int
        /// The trace that a retry continues.
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
    /// The first schema version with traces of deferred keys.
    static let schemaOldest: Int32 = 27

    /// Defers the keys of committed decisions. An existing row is replaced, except if a ``Cascade`` made it due, in
    /// this or another transaction, and no worker has taken it since: the decision may not have read the cascade's
    /// cause.
    static func deferKeys(_ deferrals: [Deferral], group: String, environment: EnvironmentID) -> Statement {
        var traces = BinaryArray(of: String.self)
        for deferral in deferrals { traces.append(deferral.trace?.text) }
        return """
            INSERT INTO pipeline.parked AS p (group_name, environment_id, key, topic, partition, subject, position,
                reason, is_dead, is_circuit, attempts, next_at, traceparent)
            SELECT \(group), \(environment.rawValue), i.key, i.topic, i.partition, i.key, 0, i.reason, i.is_dead,
                i.is_circuit, i.attempts, now() + make_interval(secs => i.wait), i.traceparent
            FROM unnest(\(deferrals.map(\.subject.description)), \(deferrals.map(\.partition.topic)),
                \(deferrals.map(\.partition.partition)),
                \(deferrals.map { $0.reason.prefix(scalars: reasonLengthMax) }), \(deferrals.map(\.isDead)),
                \(deferrals.map(\.isCircuit)), \(deferrals.map { Int32($0.attemptCount) }),
                \(deferrals.map { $0.wait.inSeconds }), \(deferrals.map { Int32($0.decision) }), \(traces))
                AS i(key, topic, partition, reason, is_dead, is_circuit, attempts, wait, decision, traceparent)
            WHERE i.decision <> ALL ((SELECT realm.missed())::int[])
            ORDER BY i.key
            ON CONFLICT (group_name, environment_id, key) DO UPDATE SET
                topic = excluded.topic, partition = excluded.partition,
                reason = excluded.reason, is_dead = excluded.is_dead, is_circuit = excluded.is_circuit,
                attempts = excluded.attempts, next_at = excluded.next_at, traceparent = excluded.traceparent,
                parked_at = CASE WHEN p.attempts < excluded.attempts OR p.is_circuit AND excluded.is_circuit
                    THEN p.parked_at ELSE now() END
            WHERE p.is_dead OR p.next_at <> p.parked_at
            """
    }

    /// Removes the rows of finished keys. They are found by their whole keys (`LATERAL … OFFSET 0`), regardless of the
    /// planner's statistics. A row that is taken at the same moment may stay and is retried. A row that is due also
    /// stays: it was written or made due (``Cascade``) after the key was taken, and the decision may not have read its
    /// cause. The deletion checks this again, since another transaction may have locked the row meanwhile.
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

    // If statistics report few rows, the planner may read and sort all rows of an environment, and repeat that for each
    // row found. Sorting is therefore disabled where an index has the order. Rows are locked and then updated by ctid;
    // a row that changes at that moment is taken by the next scan.

    /// Makes the following statements of the transaction read in index order.
    private static let inIndexOrder: Statement = "SELECT set_config('enable_sort', 'off', true)"

    /// Takes due keys of a worker's partitions, and reserves them for `lease`. The limit per environment prevents one
    /// backlog from delaying others; the longest overdue keys come first.
    ///
    /// A failure of the server may undo the reservation: the keys are then taken again.
    ///
    /// - Returns: Also the environments with deferred keys, including dead-lettered ones.
    static func takeDue(
        _ request: DueRequest, group: String, partitions: Set<TopicPartition>, lease: Duration,
        on connection: inout Connection
    ) throws(PostgresError) -> (due: [Due], environments: Set<EnvironmentID>) {
        let answers = try connection.run([
            inIndexOrder, takeDue(request, group: group, partitions: Array(partitions), lease: lease),
            environments(group: group), .asynchronousCommit,
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

    /// Environments with deferred keys, including dead-lettered ones. Uses an index, regardless of the number of keys.
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

    /// Finds the keys of items that are deferred, including dead-lettered ones. Rows: the key.
    static func deferred(
        among keys: [String], group: String, environment: EnvironmentID
    ) -> Statement {
        """
        SELECT i.key
        FROM unnest(\(keys)) AS i(key)
        CROSS JOIN LATERAL (
            SELECT FROM pipeline.parked p
            WHERE p.group_name = \(group) AND p.environment_id = \(environment.rawValue) AND p.key = i.key
            OFFSET 0
        ) p
        """
    }

    /// Makes keys due early that wait for a free slot.
    ///
    /// - Returns: The number of keys.
    static func expedite(
        group: String, environment: EnvironmentID, partitions: Set<TopicPartition>, countMax: Int,
        on connection: inout Connection
    ) throws(PostgresError) -> Int {
        let ordered = Array(partitions)
        return try connection.run([
            inIndexOrder,
            """
            WITH d AS MATERIALIZED (
                SELECT ctid AS place FROM pipeline.parked
                WHERE group_name = \(group) AND environment_id = \(environment.rawValue) AND NOT is_dead
                    AND next_at > now() AND reason = \(DeferralCause.noFreeSlot)
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

    /// Dead-letters an unreadable message under its topic, partition and offset.
    static func poison(_ message: Message, reason: String, group: String) -> Statement {
        let location = "\(message.topic)/\(message.partition)/\(message.offset)"
        return """
            INSERT INTO pipeline.parked (group_name, environment_id, key, topic, partition, subject, position, reason,
                is_dead, is_circuit, attempts, next_at)
            VALUES (\(group), 0, \(location), \(message.topic), \(message.partition), \(location), 0,
                \(reason), true, false,
                0, now())
            ON CONFLICT (group_name, environment_id, key) DO NOTHING
            """
    }
}
