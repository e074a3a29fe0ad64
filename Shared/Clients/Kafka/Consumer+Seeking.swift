internal import CKafka

extension Consumer {
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
