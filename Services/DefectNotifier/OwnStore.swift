import FoundationEssentials
import Model
import ObjectStore
import Postgres

/// The SQL of `defect.own_run` and `defect.own_watermark`: what `DefectStore` has of an environment's account, of
/// people who are told by their own logins. People are named by the numbers of their realms.
enum OwnStore {
    // MARK: Runs

    /// The last run of each person and scope. Rows: realm, scope, run, the last one that is done, how many milliseconds
    /// ago it was begun, whether the next one is asked for.
    static func runs(in environment: EnvironmentID) -> Statement {
        """
        SELECT realm_id, scope, run, finished_run,
            (extract(epoch FROM now() - started_at) * 1000)::bigint, asked_for
        FROM defect.own_run WHERE environment_id = \(environment)
        """
    }

    /// The last runs of some people whose findings are written. Rows: realm, scope, run.
    static func finished(_ realms: [Int32], in environment: EnvironmentID) -> Statement {
        """
        SELECT realm_id, scope, finished_run FROM defect.own_run
        WHERE environment_id = \(environment) AND realm_id = ANY (\(realms))
        """
    }

    /// The polls of these runs are written.
    static func begun(
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

    /// Another worker may have finished the run meanwhile.
    static func expectUnfinished(
        _ run: Int64, of scope: DefectPoll.Scope, _ realm: Int32, in environment: EnvironmentID, decision: Int
    ) -> Statement {
        """
        SELECT realm.miss(\([Int32(decision)])) FROM defect.own_run
        WHERE environment_id = \(environment) AND realm_id = \(realm) AND scope = \(scope.rawValue)
            AND finished_run >= \(run)
        """
    }

    /// A worker may be faster than the scheduler, as with `DefectStore.finish`.
    static func finish(
        _ run: Int64, of scope: DefectPoll.Scope, _ realm: Int32, in environment: EnvironmentID, decision: Int
    ) -> Statement {
        """
        INSERT INTO defect.own_run AS r (environment_id, realm_id, scope, run, started_at, finished_run)
        SELECT \(environment), \(realm), \(scope.rawValue), \(run), now(), \(run)
        WHERE \(Int32(decision)) <> ALL ((SELECT realm.missed())::int[])
        ON CONFLICT (environment_id, realm_id, scope) DO UPDATE SET finished_run = excluded.finished_run
        WHERE r.finished_run < excluded.finished_run
        """
    }

    // MARK: Watermarks

    /// Up to where some people's own logins have read which tracker. Rows: realm, tracker, time.
    static func watermarks(_ realms: [Int32], in environment: EnvironmentID) -> Statement {
        """
        SELECT realm_id, tracker_id, action_timestamp FROM defect.own_watermark
        WHERE environment_id = \(environment) AND realm_id = ANY (\(realms))
        """
    }

    /// The oldest of them. Rows: one time, null when there are none.
    static func oldestWatermark(of tracker: UUID, in environment: EnvironmentID) -> Statement {
        """
        SELECT min(action_timestamp COLLATE "C") FROM defect.own_watermark
        WHERE environment_id = \(environment) AND tracker_id = \(tracker)
        """
    }

    /// The account has read what they had not.
    static func forgetWatermarks(of tracker: UUID, in environment: EnvironmentID, decision: Int) -> Statement {
        """
        DELETE FROM defect.own_watermark
        WHERE environment_id = \(environment) AND tracker_id = \(tracker)
            AND \(Int32(decision)) <> ALL ((SELECT realm.missed())::int[])
        """
    }

    /// Whether a round of the environment's account was begun within the last seconds. Rows: one boolean.
    static func hasAccountReadLately(within seconds: Int, in environment: EnvironmentID) -> Statement {
        """
        SELECT EXISTS (SELECT FROM defect.run
            WHERE environment_id = \(environment) AND scope = \(DefectPoll.Scope.changes.rawValue)
                AND started_at > now() - make_interval(secs => \(Double(seconds))))
        """
    }

    /// The decision stands only while the person's watermark of the tracker is this one; `nil`: there is none.
    static func expectWatermark(
        _ time: String?, of tracker: UUID, _ realm: Int32, in environment: EnvironmentID, decision: Int
    ) -> Statement {
        """
        SELECT realm.miss(\([Int32(decision)]))
        FROM realm.environment e LEFT JOIN defect.own_watermark w
            ON w.environment_id = e.id AND w.realm_id = \(realm) AND w.tracker_id = \(tracker)
        WHERE e.id = \(environment) AND w.action_timestamp IS DISTINCT FROM \(time)
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

    /// Moves the environment's watermark, that of all who read, where this is later. As texts, times are in their
    /// order.
    ///
    /// - Parameter afterAccount: Whether others may still go on from the account's; else it is forgotten.
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
