import Essentials
import FoundationEssentials
import Model
import ObjectStore
import Postgres

/// The SQL of `defect.attempt`.
enum AttemptStore {
    /// A row of the ledger.
    struct Row: Equatable {
        let target: UUID
        let realm: Int32
        let command: UUID
        let attempt: Attempt
    }

    /// A row to insert or update.
    struct RowWrite {
        let target: UUID
        let realm: Int32
        let command: UUID
        let call: UUID
        let record: String?
        let lease: Duration
        let decision: Int
    }

    /// The rows of some commands, and of some records. Rows: as ``read(_:)`` reads them.
    static func load(
        commands: [(realm: Int32, id: UUID)], targets: [UUID], in environment: EnvironmentID
    ) -> Statement {
        """
        SELECT a.target_id, a.realm_id, a.command_id, a.call_id, a.record,
            greatest(extract(epoch FROM a.lease_until - now()), 0)::float8
        FROM (
            SELECT a.* FROM unnest(\(commands.map(\.realm)), \(commands.map(\.id))) AS c(realm_id, id)
            CROSS JOIN LATERAL (
                SELECT * FROM defect.attempt
                WHERE environment_id = \(environment) AND realm_id = c.realm_id AND command_id = c.id
                OFFSET 0
            ) a
            UNION
            SELECT a.* FROM unnest(\(targets)) AS t(id)
            CROSS JOIN LATERAL (
                SELECT * FROM defect.attempt WHERE environment_id = \(environment) AND target_id = t.id
                OFFSET 0
            ) a
        ) a
        """
    }

    static func read(_ rows: Rows) throws(PostgresError) -> [Row] {
        try rows.decode(UUID.self, Int32.self, UUID.self, UUID.self, String?.self, Double.self).map {
            target, realm, command, call, record, seconds in
            Row(
                target: target, realm: realm, command: command,
                attempt: Attempt(
                    call: call, record: record, leaseRemaining: .milliseconds(Int64((seconds * 1_000).rounded(.up)))))
        }
    }

    // MARK: Writing

    /// Fails a decision unless the row of its record has the call that the decision is based on; `nil`: unless there is
    /// no row.
    static func expect(
        _ calls: [(target: UUID, call: UUID?, decision: Int)], in environment: EnvironmentID
    ) -> Statement {
        var expected = BinaryArray(of: UUID.self)
        for call in calls { expected.append(call.call) }
        return """
            SELECT realm.miss(array_agg(g.decision))
            FROM unnest(\(calls.map(\.target)), \(expected), \(calls.map { Int32($0.decision) }))
                AS g(target_id, call_id, decision)
            LEFT JOIN LATERAL (
                SELECT a.call_id FROM defect.attempt a
                WHERE a.environment_id = \(environment) AND a.target_id = g.target_id
                OFFSET 0
            ) a ON true
            WHERE a.call_id IS DISTINCT FROM g.call_id
            """
    }

    static func save(_ writes: [RowWrite], in environment: EnvironmentID) -> Statement {
        var records = BinaryArray(of: String.self)
        for write in writes { records.append(write.record) }
        return """
            INSERT INTO defect.attempt (environment_id, target_id, realm_id, command_id, call_id, record, lease_until)
            SELECT \(environment), i.target_id, i.realm_id, i.command_id, i.call_id, i.record,
                now() + make_interval(secs => i.lease)
            FROM unnest(\(writes.map(\.target)), \(writes.map(\.realm)), \(writes.map(\.command)),
                \(writes.map(\.call)), \(records), \(writes.map { $0.lease.inSeconds }),
                \(writes.map { Int32($0.decision) }))
                AS i(target_id, realm_id, command_id, call_id, record, lease, decision)
            WHERE i.decision <> ALL ((SELECT realm.missed())::int[])
            ORDER BY i.target_id
            ON CONFLICT (environment_id, target_id) DO UPDATE SET
                call_id = excluded.call_id, record = excluded.record, lease_until = excluded.lease_until
            """
    }

    static func remove(_ targets: [(target: UUID, decision: Int)], in environment: EnvironmentID) -> Statement {
        """
        DELETE FROM defect.attempt a
        USING unnest(\(targets.map(\.target)), \(targets.map { Int32($0.decision) })) AS i(target_id, decision)
        WHERE a.environment_id = \(environment) AND a.target_id = i.target_id
            AND i.decision <> ALL ((SELECT realm.missed())::int[])
        """
    }

    /// Removes the rows of the mirrors of deleted defects.
    static func removeMirrors(_ mirrors: [(key: ObjectKey, decision: Int)], in environment: EnvironmentID) -> Statement
    {
        """
        DELETE FROM defect.mirror m
        USING unnest(\(mirrors.map(\.key.id)), \(mirrors.map(\.key.realm)), \(mirrors.map { Int32($0.decision) }))
            AS i(defect_id, realm_id, decision)
        WHERE m.environment_id = \(environment) AND m.defect_id = i.defect_id AND m.realm_id = i.realm_id
            AND i.decision <> ALL ((SELECT realm.missed())::int[])
        """
    }

    /// Requests the next history poll of `defect-notifier` with the environment's account, so that mirrors show the
    /// changes.
    static func requestPoll(_ decisions: [Int], in environment: EnvironmentID) -> Statement {
        """
        UPDATE defect.run SET asked_for = true
        WHERE environment_id = \(environment) AND scope = \(DefectPoll.Scope.changes.rawValue) AND EXISTS (
            SELECT FROM unnest(\(decisions.map { Int32($0) })) AS i(decision)
            WHERE i.decision <> ALL ((SELECT realm.missed())::int[]))
        """
    }

    /// Requests history polls with own logins of the people whose commands are done, if the environment has no account.
    static func requestOwnLoginPolls(
        _ done: [(realm: Int32, decision: Int)], in environment: EnvironmentID
    ) -> Statement {
        """
        UPDATE defect.own_run SET asked_for = true
        WHERE environment_id = \(environment) AND scope = \(DefectPoll.Scope.changes.rawValue) AND realm_id IN (
            SELECT i.realm_id FROM unnest(\(done.map(\.realm)), \(done.map { Int32($0.decision) }))
                AS i(realm_id, decision)
            WHERE i.decision <> ALL ((SELECT realm.missed())::int[]))
        """
    }
}
