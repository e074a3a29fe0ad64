package import Model
package import Postgres

/// Removes tombstones and pointers that no device and no relay needs any more.
///
/// The floor moves first, in a separate transaction under the counter's lock: cursors below it are rejected from then
/// on, so that no device can miss a tombstone that is removed afterwards. The floor never passes the relay's position.
/// Compaction does not wait for locks, because its caller has other work.
package enum Compaction {
    /// The result of a step.
    package enum Outcome: Equatable, Sendable {
        /// The number of removed pointers; 0 if nothing is left to remove.
        case removed(Int)
        /// Another transaction holds a lock; retry later.
        case locked
    }

    /// The environments with data to remove. Rows: id.
    ///
    /// - Parameter keep: The minimum age of removed changes.
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

    /// Performs one limited step for one environment.
    ///
    /// - Parameters:
    ///   - keep: The minimum age of removed changes: the time for which a device can be offline without a new download.
    ///   - countMax: Maximum number of pointers to remove.
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

    /// Limits the wait for locks.
    private static var limitLockWait: Statement { "SELECT set_config('lock_timeout', '50', true)" }

    /// - Returns: The floor; `nil` if it should move but the counter is locked.
    private static func moveFloor(
        _ environment: EnvironmentID, keep: Duration, countMax: Int, on connection: inout Connection
    ) throws(PostgresError) -> Int64? {
        let results = try connection.run([
            limitLockWait,
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
        guard let (before, target, isRaised) = try results[1].first?.decode(Int64.self, Int64.self, Bool.self) else {
            return 0
        }
        if isRaised { return target }
        return before < target ? nil : before
    }

    /// Looks the tombstones up by their complete keys (`LATERAL … OFFSET 0`) and deletes them by `ctid`. An object that
    /// was revived meanwhile is no tombstone, and stays.
    private static func remove(
        _ environment: EnvironmentID, upTo floor: Int64, on connection: inout Connection
    ) throws(PostgresError) -> Int {
        let results = try connection.run([
            limitLockWait,
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
        return results[2].affectedCount
    }
}
