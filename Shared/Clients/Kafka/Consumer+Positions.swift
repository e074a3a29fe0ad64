internal import CKafka

/// A consumer's progress in one partition, from local state without a request.
package struct Position: Hashable, Sendable {
    package let partition: TopicPartition
    /// The offset after the last delivered message; `nil` before the first.
    package let next: Int64?
    /// The next offset to commit: all lower ones are finished. `nil` before the first delivery.
    package let finishedBelow: Int64?
    /// The offset after the partition's last message, as of the last fetch; `nil` before the first.
    package let end: Int64?
    package let unfinishedCount: Int
    /// The timestamp of the lowest unfinished message, in milliseconds since 1970.
    package let oldestUnfinishedTimestamp: Int64?

    /// The number of unfinished messages, delivered or not; `nil` if the end or the progress is unknown.
    package var lag: Int64? {
        guard let end, let finishedBelow else { return nil }
        return max(0, end - finishedBelow)
    }
}

extension Consumer {
    /// The progress in each assigned partition, ordered by topic and partition.
    package var positions: [Position] {
        context.trackers.values.map { tracker in
            Position(
                partition: tracker.partition, next: tracker.next, finishedBelow: tracker.finishedBelow,
                end: cachedEnd(of: tracker.partition), unfinishedCount: tracker.unfinishedCount,
                oldestUnfinishedTimestamp: tracker.oldestUnfinishedTimestamp)
        }
        .sorted { ($0.partition.topic, $0.partition.partition) < ($1.partition.topic, $1.partition.partition) }
    }

    /// Returns the end as of the last fetch; `nil` before the first.
    private func cachedEnd(of partition: TopicPartition) -> Int64? {
        var low: Int64 = -1
        var high: Int64 = -1
        unsafe rd_kafka_get_watermark_offsets(client.pointer, partition.topic, partition.partition, &low, &high)
        return high < 0 ? nil : high
    }

    /// Restarts delivery of the partition from its first message. Previously fetched or delivered messages no longer
    /// count: finishing them has no effect.
    ///
    /// - Throws: If the partition is not assigned, no message of it was fetched yet, or the client did not respond
    ///   within `waitMax`.
    package mutating func seekToBeginning(
        _ partition: TopicPartition, waitMax: Duration = .seconds(5)
    ) throws(KafkaError) {
        guard let tracker = context.trackers[partition] else {
            throw KafkaError(RD_KAFKA_RESP_ERR__STATE, "\(partition) is not assigned")
        }
        guard tracker.isStarted || cachedEnd(of: partition) != nil else {
            throw KafkaError(RD_KAFKA_RESP_ERR__STATE, "no message of \(partition) was fetched yet")
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
