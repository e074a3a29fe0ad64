package import Model
import ObjectStore
package import Postgres

/// What follows from one change for many keys: they are put among the parked keys, due at once, by one statement of the
/// transaction that saw the cause. From there on they are ordinary keys: taken a few at a time, also by other workers,
/// after a crash too, and seen by `fieldpost parked`.
package enum Cascade {
    /// The statement that has keys be decided anew, for ``WriteBatch/also(_:)`` or by itself. A key that is parked
    /// already is due at once, dead or not, with all of its attempts: so a newer event of it would have it. That it is
    /// due since it was parked tells ``ParkedKeys`` who put it there.
    ///
    /// - Parameters:
    ///   - group: The consumer group that decides them.
    ///   - topic: The topic that the keys' events are on. A key comes to a worker that has one of the topic's
    ///     partitions: any will do, since what two workers decide at a time is guarded.
    ///   - keys: Selects four columns: the key as an event's subject, a `uuid` that spreads the keys over the
    ///     partitions, why it is decided anew, and the number of the decision that it follows from (-1: of none).
    package static func due(
        group: String, topic: Topic, in environment: EnvironmentID, _ keys: Statement
    ) -> Statement {
        """
        INSERT INTO pipeline.parked AS p (group_name, environment_id, key, topic, partition, subject, position, reason,
            is_dead, is_circuit, attempts, next_at)
        SELECT DISTINCT ON (i.key) \(group), \(environment.rawValue), i.key, \(topic.name),
            get_byte(uuid_send(i.spread), 15) % \(Int32(topic.partitions)), i.key, 0, i.reason, false, false, 0, now()
        FROM (\(keys)) AS i(key, spread, reason, decision)
        WHERE i.decision <> ALL ((SELECT realm.missed())::int[])
        ORDER BY i.key
        ON CONFLICT (group_name, environment_id, key) DO UPDATE SET
            reason = excluded.reason, is_dead = false, is_circuit = false, attempts = 0, parked_at = now(),
            next_at = excluded.next_at
        """
    }
}
