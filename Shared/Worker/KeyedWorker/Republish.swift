import Kafka
package import Model
package import Postgres

/// Offsets of messages that Kafka removed before the group read them.
struct ExpiredOffsets: Equatable {
    let partition: TopicPartition
    let offsets: Range<Int64>
}

/// The SQL of `realm.republish` and `pipeline.missed`: requests to publish all objects of a topic again.
package enum Republish {
    /// A requested topic of one environment.
    package struct Request: Equatable {
        package let topic: String
        /// Grows with each request for the topic.
        package let number: Int64

        package init(topic: String, number: Int64) {
            self.topic = topic
            self.number = number
        }
    }

    /// Serialises requests and the start of a new epoch.
    package static let lock: Statement = "SELECT pg_advisory_xact_lock(\(0x6669_656c_6472_6570 as Int64))"

    /// Requests a topic in every environment. Rows affected: the environments.
    package static func request(_ topic: String) -> Statement {
        """
        INSERT INTO realm.republish (environment_id, topic) SELECT id, \(topic) FROM realm.environment
        ON CONFLICT (environment_id, topic) DO UPDATE SET number = excluded.number
        """
    }

    /// Requests topics of own kinds, in the environments that declare them. Rows affected: the environments.
    package static func request(own topics: [String]) -> Statement {
        """
        INSERT INTO realm.republish (environment_id, topic)
        SELECT DISTINCT environment_id, topic FROM realm.own_kind WHERE topic = ANY(\(topics))
        ON CONFLICT (environment_id, topic) DO UPDATE SET number = excluded.number
        """
    }

    /// Requests a topic in one environment.
    package static func request(_ topic: String, in environment: EnvironmentID) -> Statement {
        """
        INSERT INTO realm.republish (environment_id, topic) VALUES (\(environment.rawValue), \(topic))
        ON CONFLICT (environment_id, topic) DO UPDATE SET number = excluded.number
        """
    }

    /// Requests republication of a topic with expired messages, unless another worker or group, or another partition,
    /// has already requested it since they were removed.
    ///
    /// A republication is published above the current end of each partition, and the relay's last offset is not beyond
    /// that end. It therefore fills every gap below it, for all groups. Rows affected by the last statement: the
    /// environments, or none.
    static func requestExpired(_ expired: [ExpiredOffsets], of topic: String) -> [Statement] {
        let partitions = expired.map(\.partition.partition)
        let ends = expired.map(\.offsets.upperBound)
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

    /// Completes a request; a newer request stays.
    package static func done(_ request: Request, in environment: EnvironmentID) -> Statement {
        """
        DELETE FROM realm.republish WHERE environment_id = \(environment.rawValue) AND topic = \(request.topic)
            AND number = \(request.number)
        """
    }
}
