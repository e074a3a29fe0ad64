package import FoundationEssentials
package import Model
import ObjectStore
package import Postgres

/// The dependent work of one change: many keys are deferred, due immediately, by a statement of the transaction that
/// processed the change, or by several before it. From then on they are ordinary deferred keys: taken in batches by any
/// worker, also after a crash, and visible in `fieldpost deferred`.
package enum Cascade {
    /// The statement that makes keys due, for ``WriteBatch/append(_:)`` or on its own. A deferred or dead-lettered key
    /// becomes due immediately with all of its attempts, as after a newer event. ``DeferredKeys`` recognises such keys
    /// by `next_at` being equal to `parked_at`.
    ///
    /// - Parameters:
    ///   - group: The consumer group that decides the keys.
    ///   - topic: The topic of the keys' events. The key goes to the worker of one of its partitions. Any partition
    ///     will do, since version checks guard concurrent decisions.
    ///   - keys: Query with four columns: the key as an event's subject, a `uuid` that spreads keys over the
    ///     partitions, the reason, and the number of the decision that causes it (-1: none).
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

    /// The statement that makes listed keys due, on its own: no decision causes it.
    ///
    /// - Parameters:
    ///   - subjects: The keys as events' subjects.
    ///   - spread: As many ids, which spread the keys over the partitions.
    package static func due(
        group: String, topic: Topic, in environment: EnvironmentID, _ subjects: [String], spread: [UUID],
        reasons: [String]
    ) -> Statement {
        due(
            group: group, topic: topic, in: environment,
            """
            SELECT i.key, i.spread, i.reason, -1
            FROM unnest(\(subjects), \(spread), \(reasons)) AS i(key, spread, reason)
            """)
    }
}
