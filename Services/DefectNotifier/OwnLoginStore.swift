import FoundationEssentials
import Model
import ObjectStore
import Postgres

/// The SQL of `defect.own_run` and `defect.own_watermark`: the counterpart of `DefectStore` for people who are notified
/// with their own logins. People are identified by the numbers of their realms. The preconditions and the ends of runs
/// are in `DefectStore`.
enum OwnLoginStore {
    // MARK: Runs

    /// The last run of each person and scope. Rows: realm, scope, run, last finished run, milliseconds since its start,
    /// whether the next one is requested.
    static func runs(in environment: EnvironmentID) -> Statement {
        """
        SELECT realm_id, scope, run, finished_run,
            (extract(epoch FROM now() - started_at) * 1000)::bigint, asked_for
        FROM defect.own_run WHERE environment_id = \(environment)
        """
    }

    /// The last finished runs of some people. Rows: realm, scope, run.
    static func finished(_ realms: [Int32], in environment: EnvironmentID) -> Statement {
        """
        SELECT realm_id, scope, finished_run FROM defect.own_run
        WHERE environment_id = \(environment) AND realm_id = ANY (\(realms))
        """
    }

    /// Records that the polls of these runs are written.
    static func recordStarts(
        _ runs: [(realm: Int32, scope: DefectPoll.Scope, run: Int64)], in environment: EnvironmentID
    ) -> Statement {
        """
        INSERT INTO defect.own_run AS r (environment_id, realm_id, scope, run, started_at)
        SELECT \(environment), i.realm_id, i.scope, i.run, now()
        FROM unnest(\(runs.map(\.realm)), \(runs.map(\.scope.rawValue)), \(runs.map(\.run))) AS i(realm_id, scope, run)
        ORDER BY i.realm_id, i.scope
        ON CONFLICT (environment_id, realm_id, scope) DO UPDATE
        SET run = excluded.run, started_at = excluded.started_at, asked_for = false
        WHERE r.run < excluded.run
        """
    }

    // MARK: Watermarks

    /// The watermarks of some people's own logins. Rows: realm, tracker, time.
    static func watermarks(_ realms: [Int32], in environment: EnvironmentID) -> Statement {
        """
        SELECT realm_id, tracker_id, action_timestamp FROM defect.own_watermark
        WHERE environment_id = \(environment) AND realm_id = ANY (\(realms))
        """
    }

    /// The oldest watermark. Rows: one time; null if there are none.
    static func oldestWatermark(of tracker: UUID, in environment: EnvironmentID) -> Statement {
        """
        SELECT min(action_timestamp COLLATE "C") FROM defect.own_watermark
        WHERE environment_id = \(environment) AND tracker_id = \(tracker)
        """
    }

    /// Removes people's watermarks after the account has caught up with them.
    static func removeWatermarks(of tracker: UUID, in environment: EnvironmentID, decision: Int) -> Statement {
        """
        DELETE FROM defect.own_watermark
        WHERE environment_id = \(environment) AND tracker_id = \(tracker)
            AND \(Int32(decision)) <> ALL ((SELECT realm.missed())::int[])
        """
    }

    /// Whether a history poll of the environment's account started within some seconds. Rows: one boolean.
    static func hasRecentAccountPoll(within seconds: Int, in environment: EnvironmentID) -> Statement {
        """
        SELECT EXISTS (SELECT FROM defect.run
            WHERE environment_id = \(environment) AND scope = \(DefectPoll.Scope.changes.rawValue)
                AND started_at > now() - make_interval(secs => \(Double(seconds))))
        """
    }

    static func moveWatermark(
        to time: String, of tracker: UUID, _ realm: Int32, in environment: EnvironmentID, decision: Int
    ) -> Statement {
        """
        INSERT INTO defect.own_watermark AS w (environment_id, realm_id, tracker_id, action_timestamp)
        SELECT \(environment), \(realm), \(tracker), \(time)
        WHERE \(Int32(decision)) <> ALL ((SELECT realm.missed())::int[])
        ON CONFLICT (environment_id, realm_id) DO UPDATE
        SET tracker_id = excluded.tracker_id, action_timestamp = excluded.action_timestamp
        """
    }

    /// Raises the environment's watermark, the newest of all logins, if this time is later. Times are compared as text:
    /// the format sorts in time order.
    ///
    /// - Parameter afterAccount: Whether people may still continue from the account's watermark; otherwise it is
    ///   removed.
    static func raiseWatermark(
        to time: String, of tracker: UUID, afterAccount: Bool, in environment: EnvironmentID, decision: Int
    ) -> Statement {
        """
        INSERT INTO defect.watermark AS w (environment_id, tracker_id, action_timestamp)
        SELECT \(environment), \(tracker), \(time)
        WHERE \(Int32(decision)) <> ALL ((SELECT realm.missed())::int[])
        ON CONFLICT (environment_id) DO UPDATE
        SET tracker_id = excluded.tracker_id, action_timestamp = excluded.action_timestamp,
            account_timestamp = CASE WHEN \(afterAccount) AND w.tracker_id = excluded.tracker_id
                THEN w.account_timestamp END
        WHERE w.tracker_id <> excluded.tracker_id
            OR w.action_timestamp COLLATE "C" < excluded.action_timestamp COLLATE "C"
        """
    }
}
