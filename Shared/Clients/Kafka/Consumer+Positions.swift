internal import CKafka

/// How far a consumer is in one partition. Costs no request: it is what the client knows.
package struct Position: Hashable, Sendable {
    package let partition: TopicPartition
    /// The offset after the last message delivered; `nil` before the first.
    package let next: Int64?
    /// All below it are finished: what is committed next. `nil` before the first delivery.
    package let finishedBelow: Int64?
    /// The offset after the partition's last message, as of the last fetch; `nil` before the first.
    package let end: Int64?
    package let unfinishedCount: Int
    /// When the lowest unfinished message was written, in milliseconds since 1970.
    package let oldestUnfinishedTimestamp: Int64?

    /// How many messages are not finished, delivered or not; `nil` while one of the two ends is unknown.
    package var lag: Int64? {
        guard let end, let finishedBelow else { return nil }
        return max(0, end - finishedBelow)
    }
}

extension Consumer {
    /// How far each assigned partition is, ordered by topic and partition.
    package var positions: [Position] {
        context.trackers.values.map { tracker in
            Position(
                partition: tracker.partition, next: tracker.next, finishedBelow: tracker.finishedBelow,
                end: knownEnd(of: tracker.partition), unfinishedCount: tracker.unfinishedCount,
                oldestUnfinishedTimestamp: tracker.oldestUnfinishedTimestamp)
        }
        .sorted { ($0.partition.topic, $0.partition.partition) < ($1.partition.topic, $1.partition.partition) }
    }

    /// As of the last fetch; `nil` before the first.
    private func knownEnd(of partition: TopicPartition) -> Int64? {
        var low: Int64 = -1
        var high: Int64 = -1
        unsafe rd_kafka_get_watermark_offsets(client.pointer, partition.topic, partition.partition, &low, &high)
        return high < 0 ? nil : high
    }

    /// Delivers the partition again from its first message. What was fetched or delivered of it before no longer
    /// counts: finishing it does nothing.
    ///
    /// - Throws: When the partition is not assigned, nothing was fetched of it yet, or the client did not answer in
    ///   `waitMax`.
    package mutating func seekToBeginning(
        _ partition: TopicPartition, waitMax: Duration = .seconds(5)
    ) throws(KafkaError) {
        guard let tracker = context.trackers[partition] else {
            throw KafkaError(RD_KAFKA_RESP_ERR__STATE, "\(partition) is not assigned")
        }
        guard tracker.isStarted || knownEnd(of: partition) != nil else {
            throw KafkaError(RD_KAFKA_RESP_ERR__STATE, "nothing was fetched of \(partition) yet")
        }
        let list = PartitionList()
        list.add(partition, offset: Int64(RD_KAFKA_OFFSET_BEGINNING))
        if let error = unsafe rd_kafka_seek_partitions(client.pointer, list.pointer, waitMax.millisecondsRoundedUp) {
            throw unsafe KafkaError(consuming: error)
        }
        try list.check()
        context.restart(tracker)
    }
}
