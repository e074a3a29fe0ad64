import Kafka
import Logging
import Model
import Postgres

/// Detection of lost Kafka content and of partitions that cannot be written.
extension Relay {
    /// Processes the brokers' responses, and queries their topics and the partitions' end offsets every
    /// `lossCheckInterval`. A partition that ends below its last confirmed offset in two successive polls has lost its
    /// content.
    ///
    /// Does not wait. A missing topic, or a partition whose leader does not respond, does not block others.
    mutating func checkForLoss() throws {
        if let result = brokerMonitor.takeResult() {
            switch result {
            case .success(let sample): try take(sample)
            case .failure(let error): brokersFailed(error)
            }
        }
        guard ContinuousClock.now >= nextLossCheck, !brokerMonitor.isPending else { return }
        nextLossCheck = .now + Self.lossCheckInterval
        brokerMonitor.submit(
            BrokerMonitor.Query(confirmed: offsets, unresponsive: unwritable.unresponsive, session: lockedOpenCount))
    }

    private var topics: [String] { routing.topics + ownTopics }

    private mutating func take(_ sample: BrokerMonitor.Sample) throws {
        if brokersRespondedAt == nil || brokersFailure != nil {
            logger.notice("brokers available", metadata: ["count": "\(sample.metadata.brokers.count)"])
        }
        (brokersRespondedAt, brokersFailure) = (.now, nil)
        unwritable.update(sample.metadata, topics: topics, responding: sample.ends.keys)
        reportUnwritable()
        logUnresponsive(sample)
        guard sample.query.session == lockedOpenCount else { return }
        try checkEnds(sample)
    }

    /// A frozen former leader that resumes lacks the messages confirmed since, until it learns of its successor. It may
    /// return the end of a partition, or name itself as its leader. Therefore one poll is not sufficient.
    private mutating func checkEnds(_ sample: BrokerMonitor.Sample) throws {
        var shortened: Set<TopicPartition> = []
        for (partition, last) in sample.query.confirmed where !unwritable.contains(partition) {
            guard let end = unwritable.has(partition) == false ? 0 : sample.ends[partition], end <= last else {
                continue
            }
            if self.shortened.contains(partition) { try contentWasLost(partition, last: last, found: end) }
            shortened.insert(partition)
            logger.warning(
                "partition ends below its confirmed offset",
                metadata: ["partition": "\(partition)", "confirmed": "\(last)", "end": "\(end)"])
        }
        self.shortened = shortened
    }

    /// Logs a failure once; readiness reports it while it lasts.
    private mutating func brokersFailed(_ error: KafkaError) {
        if brokersFailure == nil || error.advice != nil && brokersFailure?.code != error.code {
            logger.log(
                level: error.advice == nil ? .warning : .error, "brokers unavailable", metadata: ["reason": "\(error)"])
        }
        brokersFailure = error
    }

    private mutating func logUnresponsive(_ sample: BrokerMonitor.Sample) {
        let silent = Set(sample.silent.keys)
        if !silent.subtracting(lastUnresponsive).isEmpty {
            logger.warning(
                "brokers did not return offsets",
                metadata: [
                    "brokers": "\(silent.sorted())", "reason": "\(sample.silent.values.first?.description ?? "")",
                ])
        }
        lastUnresponsive = silent
    }

    /// Records that a topic rejects messages; it is republished completely later.
    mutating func reject(_ topic: String, _ error: KafkaError) {
        unwritable.reject(topic, error.description)
        reportUnwritable()
    }

    mutating func reportUnwritable() {
        let reasons = unwritable.reasons(of: topics)
        for (topic, reason) in reasons where loggedReasons[topic] != reason {
            logger.error(
                "topic cannot be published completely", metadata: ["topic": "\(topic)", "reason": "\(reason)"])
            loggedReasons[topic] = reason
        }
        for topic in blockedTopics.keys where reasons[topic] == nil {
            logger.notice("retrying topic", metadata: ["topic": "\(topic)"])
            deferred = deferred.filter { $0.topic != topic }
        }
        blockedTopics = reasons
    }

    mutating func contentWasLost(_ partition: TopicPartition, last: Int64, found: Int64) throws {
        try connection.run(RelayStore.newEpoch)
        throw ContentLost(partition: partition, last: last, found: found)
    }
}
