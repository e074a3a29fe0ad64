package import Model
package import Postgres

/// Removes tombstones and pointers that nobody needs any more.
///
/// The floor moves first, in a transaction of its own under the counter's lock: a cursor below it is refused from then
/// on, so nobody can miss a tombstone that is removed afterwards. It never passes the relay.
package enum Compaction {
    /// One bounded step for one environment.
    ///
    /// - Parameters:
    ///   - keep: Changes younger than this stay: it is how long a device may be offline without a new download.
    ///   - countMax: At most this many pointers are removed.
    /// - Returns: How many pointers were removed; 0 when there is nothing left to do.
    package static func step(
        _ environment: EnvironmentID, keep: Duration, countMax: Int, on connection: inout Connection
    ) throws(PostgresError) -> Int {
        let moved = try connection.run(
            """
            UPDATE realm.environment e SET compacted_position = greatest(e.compacted_position, f.floor)
            FROM (
                SELECT coalesce(max(c.position), 0) AS floor FROM (
                    SELECT position, changed_at FROM realm.change WHERE environment_id = \(environment.rawValue)
                    ORDER BY position LIMIT \(Int64(countMax))
                ) c
                WHERE c.changed_at < now() - make_interval(secs => \(Double(keep.components.seconds)))
                    AND c.position <= (SELECT position FROM realm.relay WHERE environment_id = \(environment.rawValue))
            ) f
            WHERE e.id = \(environment.rawValue) RETURNING e.compacted_position
            """)
        guard moved.count == 1 else { return 0 }
        let floor: Int64 = try moved[0].value(0)
        let answers = try connection.run([
            """
            DELETE FROM realm.object o USING realm.change c
            WHERE c.environment_id = \(environment.rawValue) AND c.position <= \(floor)
                AND o.environment_id = c.environment_id AND o.realm_id = c.realm_id AND o.kind = c.kind AND o.id = c.id
                AND o.position = c.position AND o.deleted
            """,
            "DELETE FROM realm.change WHERE environment_id = \(environment.rawValue) AND position <= \(floor)",
        ])
        return answers[1].affectedCount
    }
}
