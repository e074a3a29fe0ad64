package import Model
package import Postgres

/// Removes tombstones and pointers that nobody needs any more.
///
/// The floor moves first, in a transaction of its own under the counter's lock: a cursor below it is refused from then
/// on, so nobody can miss a tombstone that is removed afterwards. It never passes the relay. No lock is waited for:
/// whoever compacts has other work to do.
package enum Compaction {
    /// What came of a step.
    package enum Outcome: Equatable, Sendable {
        /// So many pointers are gone; with 0 there is nothing left to do.
        case removed(Int)
        /// Somebody holds a lock: another time.
        case locked
    }

    /// The environments that have something to remove. Rows: id.
    ///
    /// - Parameter keep: Changes younger than this stay.
    package static func due(keep: Duration) -> Statement {
        """
        SELECT e.id
        FROM realm.environment e CROSS JOIN LATERAL (
            SELECT c.position, c.changed_at FROM store.change c WHERE c.environment_id = e.id
            ORDER BY c.position LIMIT 1
        ) c LEFT JOIN realm.relay r ON r.environment_id = e.id
        WHERE c.position <= e.compacted_position
            OR c.position <= r.position
                AND c.changed_at < now() - make_interval(secs => \(Double(keep.components.seconds)))
        ORDER BY e.id
        """
    }

    /// One bounded step for one environment.
    ///
    /// - Parameters:
    ///   - keep: Changes younger than this stay: it is how long a device may be offline without a new download.
    ///   - countMax: At most this many pointers are removed.
    package static func step(
        _ environment: EnvironmentID, keep: Duration, countMax: Int, on connection: inout Connection
    ) throws(PostgresError) -> Outcome {
        do throws(PostgresError) {
            guard let floor = try moveFloor(environment, keep: keep, countMax: countMax, on: &connection) else {
                return .locked
            }
            return .removed(try remove(environment, upTo: floor, on: &connection))
        } catch {
            guard error.isLocked else { throw error }
            return .locked
        }
    }

    /// A lock that is held longer is not waited for.
    private static var waitBriefly: Statement { "SELECT set_config('lock_timeout', '50', true)" }

    /// - Returns: The floor; `nil` when it should move and the counter is locked.
    private static func moveFloor(
        _ environment: EnvironmentID, keep: Duration, countMax: Int, on connection: inout Connection
    ) throws(PostgresError) -> Int64? {
        let answers = try connection.run([
            waitBriefly,
            """
            WITH f AS MATERIALIZED (
                SELECT coalesce(max(c.position), 0) AS floor FROM (
                    SELECT position, changed_at FROM store.change WHERE environment_id = \(environment.rawValue)
                    ORDER BY position LIMIT \(Int64(countMax))
                ) c
                WHERE c.changed_at < now() - make_interval(secs => \(Double(keep.components.seconds)))
                    AND c.position <= (SELECT position FROM realm.relay WHERE environment_id = \(environment.rawValue))
            ), l AS MATERIALIZED (
                SELECT e.id FROM realm.environment e, f
                WHERE e.id = \(environment.rawValue) AND e.compacted_position < f.floor
                FOR NO KEY UPDATE OF e SKIP LOCKED
            ), m AS (
                UPDATE realm.environment e SET compacted_position = f.floor FROM l, f WHERE e.id = l.id
                RETURNING e.id
            )
            SELECT e.compacted_position, f.floor, EXISTS (SELECT FROM m) FROM realm.environment e, f
            WHERE e.id = \(environment.rawValue)
            """,
        ])
        guard let (before, wanted, isRaised) = try answers[1].first?.decode(Int64.self, Int64.self, Bool.self) else {
            return 0
        }
        if isRaised { return wanted }
        return before < wanted ? nil : before
    }

    /// The tombstones are found by their whole keys (`LATERAL … OFFSET 0`) and removed where they are. One that is
    /// revived meanwhile is no tombstone any more, and stays.
    private static func remove(
        _ environment: EnvironmentID, upTo floor: Int64, on connection: inout Connection
    ) throws(PostgresError) -> Int {
        let answers = try connection.run([
            waitBriefly,
            """
            DELETE FROM store.object
            WHERE ctid = ANY (ARRAY(
                SELECT o.ctid FROM store.change c CROSS JOIN LATERAL (
                    SELECT ctid, x.position, x.deleted FROM store.object x
                    WHERE x.environment_id = \(environment.rawValue) AND x.realm_id = c.realm_id AND x.kind = c.kind
                        AND x.id = c.id
                    OFFSET 0
                ) o
                WHERE c.environment_id = \(environment.rawValue) AND c.position <= \(floor)
                    AND o.position = c.position AND o.deleted
            )) AND deleted AND position <= \(floor)
            """,
            "DELETE FROM store.change WHERE environment_id = \(environment.rawValue) AND position <= \(floor)",
        ])
        return answers[2].affectedCount
    }
}
