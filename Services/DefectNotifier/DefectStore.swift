import FoundationEssentials
import Model
import ObjectStore
import Postgres

/// The SQL of `defect.run`, `defect.watermark` and `defect.seen`. Statements with a realm are for that person's own
/// login: they use the tables of `OwnLoginStore`.
enum DefectStore {
    // MARK: Runs

    /// The last run of each environment and scope. Rows: environment, scope, run, milliseconds since its start, or null
    /// if the next run was requested. Services of schema 29 request one with `-infinity`.
    static let runs: Statement = """
        SELECT environment_id, scope, run,
            CASE WHEN isfinite(started_at) AND NOT asked_for
                THEN (extract(epoch FROM now() - started_at) * 1000)::bigint END
        FROM defect.run
        """

    /// The last finished run of each scope. Rows: scope, run.
    static func finished(in environment: EnvironmentID) -> Statement {
        "SELECT scope, finished_run FROM defect.run WHERE environment_id = \(environment.rawValue)"
    }

    static func finishedRuns(_ rows: Rows) throws(PostgresError) -> [DefectPoll.Scope: Int64] {
        var runs: [DefectPoll.Scope: Int64] = [:]
        for (scope, run) in try rows.decode(String.self, Int64.self) {
            if let scope = DefectPoll.Scope(rawValue: scope) { runs[scope] = run }
        }
        return runs
    }

    /// Records that the poll of a run is written.
    static func recordStart(_ run: Int64, of scope: DefectPoll.Scope, in environment: EnvironmentID) -> Statement {
        """
        INSERT INTO defect.run AS r (environment_id, scope, run, started_at)
        VALUES (\(environment.rawValue), \(scope.rawValue), \(run), now())
        ON CONFLICT (environment_id, scope) DO UPDATE
        SET run = excluded.run, started_at = excluded.started_at, asked_for = false
        WHERE r.run < excluded.run
        """
    }

    /// Fails the decision if another worker has finished the run.
    ///
    /// - Parameter realm: The realm of the person whose own login polls; `nil`: the environment's account polls.
    static func expectUnfinished(
        _ run: Int64, of scope: DefectPoll.Scope, _ realm: Int32?, in environment: EnvironmentID, decision: Int
    ) -> Statement {
        let table: Statement = realm == nil ? "defect.run" : "defect.own_run"
        let person: Statement = realm.map { "AND realm_id = \($0)" } ?? ""
        return """
            SELECT realm.miss(\([Int32(decision)])) FROM \(table)
            WHERE environment_id = \(environment) \(person) AND scope = \(scope.rawValue) AND finished_run >= \(run)
            """
    }

    /// Marks a run as finished. It inserts the run if the worker is faster than the scheduler, which records the start
    /// after it has written the poll.
    static func finish(
        _ run: Int64, of scope: DefectPoll.Scope, _ realm: Int32?, in environment: EnvironmentID, decision: Int
    ) -> Statement {
        guard let realm else {
            return """
                INSERT INTO defect.run AS r (environment_id, scope, run, started_at, finished_run)
                SELECT \(environment), \(scope.rawValue), \(run), now(), \(run)
                WHERE \(Int32(decision)) <> ALL ((SELECT realm.missed())::int[])
                ON CONFLICT (environment_id, scope) DO UPDATE SET finished_run = excluded.finished_run
                WHERE r.finished_run < excluded.finished_run
                """
        }
        return """
            INSERT INTO defect.own_run AS r (environment_id, realm_id, scope, run, started_at, finished_run)
            SELECT \(environment), \(realm), \(scope.rawValue), \(run), now(), \(run)
            WHERE \(Int32(decision)) <> ALL ((SELECT realm.missed())::int[])
            ON CONFLICT (environment_id, realm_id, scope) DO UPDATE SET finished_run = excluded.finished_run
            WHERE r.finished_run < excluded.finished_run
            """
    }

    // MARK: Watermark

    /// The environment's position and its watermarks. Rows: position, tracker, newest time read with any login, newest
    /// time read with the account; null if there is none.
    static func progress(of environment: EnvironmentID) -> Statement {
        """
        SELECT e.position, w.tracker_id, w.action_timestamp, w.account_timestamp
        FROM realm.environment e LEFT JOIN defect.watermark w ON w.environment_id = e.id
        WHERE e.id = \(environment.rawValue)
        """
    }

    /// Fails the decision unless the tracker's watermark is this one; `nil`: unless there is none.
    ///
    /// - Parameter realm: The realm of the person whose own login polls; `nil`: the environment's account polls.
    static func expectWatermark(
        _ time: String?, of tracker: UUID, _ realm: Int32?, in environment: EnvironmentID, decision: Int
    ) -> Statement {
        let table: Statement = realm == nil ? "defect.watermark" : "defect.own_watermark"
        let person: Statement = realm.map { "AND w.realm_id = \($0)" } ?? ""
        return """
            SELECT realm.miss(\([Int32(decision)]))
            FROM realm.environment e LEFT JOIN \(table) w
                ON w.environment_id = e.id \(person) AND w.tracker_id = \(tracker)
            WHERE e.id = \(environment) AND w.action_timestamp IS DISTINCT FROM \(time)
            """
    }

    /// Sets the watermark of the account and of the environment.
    static func moveWatermark(
        to time: String, of tracker: UUID, in environment: EnvironmentID, decision: Int
    ) -> Statement {
        """
        INSERT INTO defect.watermark AS w (environment_id, tracker_id, action_timestamp, account_timestamp)
        SELECT \(environment.rawValue), \(tracker), \(time), \(time)
        WHERE \(Int32(decision)) <> ALL ((SELECT realm.missed())::int[])
        ON CONFLICT (environment_id) DO UPDATE
        SET tracker_id = excluded.tracker_id, action_timestamp = excluded.action_timestamp,
            account_timestamp = excluded.account_timestamp
        """
    }

    // MARK: Rows of the history

    /// The rows that were processed before. Rows: row.
    static func processed(_ rows: [UUID], in environment: EnvironmentID) -> Statement {
        """
        SELECT s.row_id FROM unnest(\(rows)) AS i(row_id) CROSS JOIN LATERAL (
            SELECT row_id FROM defect.seen
            WHERE environment_id = \(environment.rawValue) AND row_id = i.row_id
            OFFSET 0
        ) s
        """
    }

    /// Fails the decision if another one has processed any of these rows.
    static func expectUnprocessed(_ rows: [UUID], in environment: EnvironmentID, decision: Int) -> Statement {
        """
        SELECT realm.miss(\([Int32(decision)]))
        WHERE EXISTS (
            SELECT FROM unnest(\(rows)) AS i(row_id) CROSS JOIN LATERAL (
                SELECT FROM defect.seen WHERE environment_id = \(environment.rawValue) AND row_id = i.row_id
                OFFSET 0
            ) s)
        """
    }

    /// - Parameter times: The time of each row, in seconds of the tracker's clock.
    static func markProcessed(_ rows: [UUID], _ times: [Int64], in environment: EnvironmentID, decision: Int)
        -> Statement
    {
        """
        INSERT INTO defect.seen (environment_id, row_id, clock_seconds)
        SELECT \(environment.rawValue), i.row_id, i.clock_seconds
        FROM unnest(\(rows), \(times)) AS i(row_id, clock_seconds)
        WHERE \(Int32(decision)) <> ALL ((SELECT realm.missed())::int[])
        ORDER BY i.row_id ON CONFLICT DO NOTHING
        """
    }

    /// Removes processed rows that no later poll reads.
    ///
    /// - Parameter time: In seconds of the tracker's clock. Later rows are read again.
    static func removeProcessed(through time: Int64, in environment: EnvironmentID, decision: Int) -> Statement {
        """
        DELETE FROM defect.seen
        WHERE environment_id = \(environment.rawValue) AND clock_seconds <= \(time)
            AND \(Int32(decision)) <> ALL ((SELECT realm.missed())::int[])
        """
    }
}
