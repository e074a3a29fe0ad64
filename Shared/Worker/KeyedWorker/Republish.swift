import Kafka
package import Model
package import Postgres

/// What a group missed of a partition: it was removed before the group has read it.
struct MissedOffsets: Equatable {
    let partition: TopicPartition
    let offsets: Range<Int64>
}

/// The SQL of `realm.republish` and `pipeline.missed`: topics whose objects are published again beside what changes.
package enum Republish {
    /// A topic of one environment.
    package struct Request: Equatable {
        package let topic: String
        /// Grows with each time the topic is asked for.
        package let number: Int64

        package init(topic: String, number: Int64) {
            self.topic = topic
            self.number = number
        }
    }

    /// Whoever asks, and who begins a new epoch, does so one after the other.
    package static let lock: Statement = "SELECT pg_advisory_xact_lock(\(0x6669_656c_6472_6570 as Int64))"

    /// Asks for a topic in every environment. Rows affected: the environments.
    package static func ask(_ topic: String) -> Statement {
        """
        INSERT INTO realm.republish (environment_id, topic) SELECT id, \(topic) FROM realm.environment
        ON CONFLICT (environment_id, topic) DO UPDATE SET number = excluded.number
        """
    }

    /// Asks for a topic in one environment.
    package static func ask(_ topic: String, in environment: EnvironmentID) -> Statement {
        """
        INSERT INTO realm.republish (environment_id, topic) VALUES (\(environment.rawValue), \(topic))
        ON CONFLICT (environment_id, topic) DO UPDATE SET number = excluded.number
        """
    }

    /// Asks for what was missed of one topic, unless that was done since it went: by another worker or group, or for
    /// another partition.
    ///
    /// What is published after the request lies above what each partition has now (the relay's last offset is not
    /// beyond it), so a gap below that is filled by it, whoever sees it. Rows affected by the last one: the
    /// environments, or none.
    static func askForMissed(_ missed: [MissedOffsets], of topic: String) -> [Statement] {
        let partitions = missed.map(\.partition.partition)
        let ends = missed.map(\.offsets.upperBound)
        return [
            lock,
            """
            WITH gap AS (
                SELECT * FROM unnest(\(partitions), \(ends)) AS g(partition, before_offset)
            ), unknown AS (
                SELECT FROM gap g WHERE NOT EXISTS (SELECT FROM pipeline.missed m WHERE m.topic = \(topic)
                    AND m.partition = g.partition AND m.before_offset >= g.before_offset)
            ), noted AS (
                INSERT INTO pipeline.missed AS m (topic, partition, before_offset)
                SELECT \(topic), a.partition, max(a.before_offset) FROM (
                    SELECT partition, before_offset FROM gap UNION ALL
                    SELECT partition, last_offset + 1 FROM realm.relay_offset WHERE topic = \(topic)) a
                WHERE EXISTS (SELECT FROM unknown) GROUP BY a.partition
                ON CONFLICT (topic, partition)
                    DO UPDATE SET before_offset = greatest(m.before_offset, excluded.before_offset)
            )
            INSERT INTO realm.republish (environment_id, topic)
            SELECT id, \(topic) FROM realm.environment WHERE EXISTS (SELECT FROM unknown)
            ON CONFLICT (environment_id, topic) DO UPDATE SET number = excluded.number
            """,
        ]
    }

    /// It was published; what was asked for since stays.
    package static func done(_ request: Request, in environment: EnvironmentID) -> Statement {
        """
        DELETE FROM realm.republish WHERE environment_id = \(environment.rawValue) AND topic = \(request.topic)
            AND number = \(request.number)
        """
    }
}
