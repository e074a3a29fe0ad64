import Kafka
import Logging
import Model
import Postgres

/// Whether the broker still has what it confirmed, and takes what is to come.
extension Relay {
    /// Processes the brokers' answers, and queries them again every `lossCheckInterval`: their topics, and the
    /// partitions' end offsets. A partition that ends below what it confirmed in two successive polls has lost its
    /// content.
    ///
    /// Nothing is waited for. A topic or partition that is missing, or whose leader does not answer, holds up no other.
    mutating func checkForLoss() throws {
        if let answer = watch.takeAnswer() {
            switch answer {
            case .success(let look): try take(look)
            case .failure(let error): brokersFailed(error)
            }
        }
        guard ContinuousClock.now >= nextLossCheck, !watch.isAsked else { return }
        nextLossCheck = .now + Self.lossCheckInterval
        watch.ask(
            BrokerWatch.Question(
                confirmed: offsets, silenced: obstacles.silenced, session: lockedOpenCount))
    }

    private mutating func take(_ look: BrokerWatch.Look) throws {
        if brokersAnsweredAt == nil || brokersFailure != nil {
            logger.notice("the brokers answer", metadata: ["count": "\(look.metadata.brokers.count)"])
        }
        (brokersAnsweredAt, brokersFailure) = (.now, nil)
        obstacles.update(look.metadata, topics: routing.topics, answered: look.ends.keys)
        tellObstacles()
        tellSilent(look)
        guard look.question.session == lockedOpenCount else { return }
        try checkEnds(look)
    }

    /// A former leader that was frozen and resumes lacks what was confirmed since, until it learns of its successor. It
    /// may return the end of a partition, or name itself as its leader. So one poll proves nothing.
    private mutating func checkEnds(_ look: BrokerWatch.Look) throws {
        var shortened: Set<TopicPartition> = []
        for (partition, last) in look.question.confirmed where !obstacles.blocks(partition) {
            guard let end = obstacles.has(partition) == false ? 0 : look.ends[partition], end <= last else { continue }
            if self.shortened.contains(partition) { try contentWasLost(partition, last: last, found: end) }
            shortened.insert(partition)
            logger.warning(
                "a partition ends below its confirmed offset",
                metadata: ["partition": "\(partition)", "confirmed": "\(last)", "end": "\(end)"])
        }
        self.shortened = shortened
    }

    /// Logs the failure once: readiness reports it as long as it lasts.
    private mutating func brokersFailed(_ error: KafkaError) {
        if brokersFailure == nil || error.advice != nil && brokersFailure?.code != error.code {
            logger.log(
                level: error.advice == nil ? .warning : .error, "the brokers do not answer",
                metadata: ["reason": "\(error)"])
        }
        brokersFailure = error
    }

    private mutating func tellSilent(_ look: BrokerWatch.Look) {
        let silent = Set(look.silent.keys)
        if !silent.subtracting(lastSilent).isEmpty {
            logger.warning(
                "brokers did not return offsets; the others were queried",
                metadata: [
                    "brokers": "\(silent.sorted())", "reason": "\(look.silent.values.first?.description ?? "")",
                ])
        }
        lastSilent = silent
    }

    /// What a topic refused is owed, and published again with all of it.
    mutating func refuse(_ topic: String, _ error: KafkaError) {
        obstacles.refuse(topic, error.description)
        tellObstacles()
    }

    mutating func tellObstacles() {
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
