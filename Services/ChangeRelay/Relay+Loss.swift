import Kafka
import Logging
import Model
import Postgres

/// Whether the broker still has what it confirmed, and takes what is to come.
extension Relay {
    /// Looks at the topics, and at how far their partitions reach: one that ends below what it confirmed has lost its
    /// content.
    ///
    /// One topic or partition that is missing, or does not answer, holds up nothing: it is said, and looked at again.
    mutating func checkForLoss() throws {
        guard ContinuousClock.now >= nextLossCheck else { return }
        nextLossCheck = .now + Self.lossCheckInterval
        try lookAtTopics()
        for (partition, last) in offsets where !obstacles.blocks(partition) {
            switch obstacles.has(partition) {
            case nil: continue
            case false?: try contentWasLost(partition, last: last, found: 0)
            case true?: break
            }
            do {
                let end = try admin.watermarks(partition).upperBound
                if end <= last { try contentWasLost(partition, last: last, found: end) }
            } catch let error as KafkaError {
                // Nor are the others asked now: each answer may be waited for as long.
                logger.warning(
                    "a partition does not tell how far it reaches",
                    metadata: ["partition": "\(partition)", "reason": "\(error)"])
                nextLossCheck = .now + Self.lossCheckInterval
                return
            }
        }
    }

    /// Finds out which topics can be written, and says once what changed.
    mutating func lookAtTopics() throws {
        obstacles.update(try admin.metadata(), topics: routing.topics)
        tellObstacles()
    }

    /// What a topic refused is owed, and published again with all of it.
    mutating func refuse(_ topic: String, _ error: KafkaError) {
        obstacles.refuse(topic, error.description)
        tellObstacles()
    }

    private mutating func tellObstacles() {
        let reasons = obstacles.reasons(of: routing.topics)
        for (topic, reason) in reasons where lastObstacles[topic] != reason {
            logger.error(
                "a topic cannot be published to, or not all of it; the others go on",
                metadata: ["topic": "\(topic)", "reason": "\(reason)"])
            lastObstacles[topic] = reason
        }
        for topic in blockedTopics.keys where reasons[topic] == nil {
            logger.notice("a topic is tried again", metadata: ["topic": "\(topic)"])
            owed = owed.filter { $0.topic != topic }
        }
        blockedTopics = reasons
    }

    mutating func contentWasLost(_ partition: TopicPartition, last: Int64, found: Int64) throws {
        try connection.run(RelayStore.newEpoch)
        throw ContentLost(partition: partition, last: last, found: found)
    }
}
