import FoundationEssentials
import Model
import ObjectStore
import Postgres

/// SQL statements for `poll.run`, `poll.finished` and `poll.watermark`.
enum PollStore {
    /// Selects environments whose next run is due. Rows: environment, run, whether a full comparison is due, seconds
    /// since the start of the last one; null if there was none or another one was requested.
    static let due: Statement = """
        SELECT c.environment_id, coalesce(r.run, 0) + 1,
            r.full_started_at IS NULL
                OR r.full_started_at <= now() - make_interval(secs => c.full_poll_interval_seconds),
            CASE WHEN isfinite(r.full_started_at) THEN extract(epoch FROM now() - r.full_started_at)::bigint END
        FROM backend.connection c LEFT JOIN poll.run r ON r.environment_id = c.environment_id
        WHERE r.started_at IS NULL OR r.started_at <= now() - make_interval(secs => c.poll_interval_seconds)
        ORDER BY c.environment_id
        """

    /// Selects environments whose catalogues were not reconciled after the last run. Rows: environment, run, start of
    /// the last full comparison.
    static let unsettled: Statement = """
        SELECT environment_id, run, coalesce(full_started_at, started_at) FROM poll.run
        WHERE settled_run < run ORDER BY environment_id
        """

    /// Selects whether a poll is unfinished. Rows: one boolean.
    static func isPending(polls: Int32, in environment: EnvironmentID) -> Statement {
        """
        SELECT EXISTS (SELECT FROM store.object o
            LEFT JOIN poll.finished f ON f.environment_id = o.environment_id AND f.poll_id = o.id
            WHERE o.environment_id = \(environment.rawValue) AND o.realm_id = \(polls)
                AND o.kind = \(Kind.poll) AND NOT o.deleted
                AND coalesce(f.run, 0) < (o.fields::json->>'run')::bigint)
        """
    }

    static func settled(_ run: Int64, in environment: EnvironmentID) -> Statement {
        """
        UPDATE poll.run SET settled_run = \(run)
        WHERE environment_id = \(environment.rawValue) AND settled_run < \(run)
        """
    }

    /// Rows: poll, run.
    static func finished(in environment: EnvironmentID) -> Statement {
        "SELECT poll_id, run FROM poll.finished WHERE environment_id = \(environment.rawValue)"
    }

    /// Rows: poll, run.
    static func finished(_ polls: [UUID], in environment: EnvironmentID) -> Statement {
        """
        SELECT poll_id, run FROM poll.finished
        WHERE environment_id = \(environment.rawValue) AND poll_id = ANY (\(polls))
        """
    }

    /// Marks the start of writing the polls of a full comparison, so that `started` detects requests for another one.
    /// It stays due until then.
    static func beginFull(in environment: EnvironmentID) -> Statement {
        """
        INSERT INTO poll.run (environment_id, run, started_at, full_started_at)
        VALUES (\(environment.rawValue), 0, '-infinity', '-infinity')
        ON CONFLICT (environment_id) DO UPDATE SET full_started_at = excluded.full_started_at
        """
    }

    /// Marks a run as started after all its polls are written. A full comparison that was requested meanwhile stays
    /// due.
    static func started(_ run: Int64, isFull: Bool, in environment: EnvironmentID) -> Statement {
        """
        UPDATE poll.run SET run = \(run), started_at = now(),
            full_started_at = CASE WHEN \(isFull) AND full_started_at = '-infinity' THEN now() ELSE full_started_at END
        WHERE environment_id = \(environment.rawValue) AND run < \(run)
        """
    }

    /// A poll whose results a decision writes.
    typealias Finishing = (poll: UUID, run: Int64, decision: Int)

    /// Makes decisions conditional on an unfinished run: another worker may have finished it meanwhile with a later
    /// result.
    static func expectUnfinished(_ polls: [Finishing], in environment: EnvironmentID) -> Statement {
        """
        SELECT realm.miss(array_agg(g.decision))
        FROM unnest(\(polls.map(\.poll)), \(polls.map(\.run)), \(polls.map { Int32($0.decision) }))
            AS g(poll_id, run, decision)
        CROSS JOIN LATERAL (
            SELECT f.run FROM poll.finished f
            WHERE f.environment_id = \(environment.rawValue) AND f.poll_id = g.poll_id
            OFFSET 0
        ) f
        WHERE f.run >= g.run
        """
    }

    static func finish(_ polls: [Finishing], in environment: EnvironmentID) -> Statement {
        """
        INSERT INTO poll.finished AS f (environment_id, poll_id, run)
        SELECT \(environment.rawValue), i.poll_id, i.run
        FROM unnest(\(polls.map(\.poll)), \(polls.map(\.run)), \(polls.map { Int32($0.decision) }))
            AS i(poll_id, run, decision)
        WHERE i.decision <> ALL ((SELECT realm.missed())::int[]) ORDER BY i.poll_id
        ON CONFLICT (environment_id, poll_id) DO UPDATE SET run = excluded.run WHERE f.run < excluded.run
        """
    }

    static func runs(_ rows: Rows) throws(PostgresError) -> [UUID: Int64] {
        var runs: [UUID: Int64] = [:]
        for (poll, run) in try rows.decode(UUID.self, Int64.self) { runs[poll] = run }
        return runs
    }

    // MARK: Changes

    /// Selects the cursor of the changes that were read, and the environment's position. Rows: cursor, position.
    static func watermark(of environment: EnvironmentID) -> Statement {
        """
        SELECT w.cursor, e.position
        FROM realm.environment e LEFT JOIN poll.watermark w ON w.environment_id = e.id
        WHERE e.id = \(environment.rawValue)
        """
    }

    /// Makes the decision conditional on the watermark; `nil` means that there is none.
    static func expectWatermark(_ cursor: String?, in environment: EnvironmentID, decision: Int) -> Statement {
        """
        SELECT realm.miss(\([Int32(decision)]))
        FROM realm.environment e LEFT JOIN poll.watermark w ON w.environment_id = e.id
        WHERE e.id = \(environment.rawValue) AND w.cursor IS DISTINCT FROM \(cursor)
        """
    }

    /// Makes the next run a full comparison.
    static func makeFullDue(in environment: EnvironmentID, decision: Int) -> Statement {
        """
        UPDATE poll.run SET full_started_at = NULL
        WHERE environment_id = \(environment.rawValue)
            AND \(Int32(decision)) <> ALL ((SELECT realm.missed())::int[])
        """
    }

    static func moveWatermark(to cursor: String, in environment: EnvironmentID, decision: Int) -> Statement {
        """
        INSERT INTO poll.watermark AS w (environment_id, cursor)
        SELECT \(environment.rawValue), \(cursor) WHERE \(Int32(decision)) <> ALL ((SELECT realm.missed())::int[])
        ON CONFLICT (environment_id) DO UPDATE SET cursor = excluded.cursor WHERE w.cursor <> excluded.cursor
        """
    }
}
