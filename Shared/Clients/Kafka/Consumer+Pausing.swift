internal import CKafka

/// Pausing. librdkafka silently loses a pause or resume that coincides with its own start of a partition, or loses the
/// start (its issues 2190 and 5591): the partition would stay paused or never be read. Therefore it is called only for
/// partitions that have delivered a message since their assignment: their start is complete.
extension Consumer {
    /// Stops all delivery until `resumeAll`. Prefetched messages are dropped and fetched again after it; messages being
    /// fetched may still be delivered, and may be delivered twice. A partition that has not delivered a message, or is
    /// assigned later, is paused after its first messages, which are delivered. Continue to call `nextBatch`, so that
    /// the consumer stays in its group.
    package mutating func pauseAll() throws(KafkaError) {
        context.isPausedAll = true
        context.stalls = StallDetector()
        try applyPause()
    }

    /// Undoes `pauseAll`.
    package mutating func resumeAll() throws(KafkaError) {
        context.isPausedAll = false
        try applyPause()
    }

    /// Pauses partitions whose pause was deferred until their first message.
    func pauseStarted() {
        // Fails only for partitions that librdkafka does not have; the next batch retries.
        if context.isPausedAll { try? applyPause() }
    }

    private func applyPause() throws(KafkaError) {
        let trackers = context.trackers.values.filter { $0.isStarted && $0.isPaused != context.isPausedAll }
        if trackers.isEmpty { return }
        let paused = PartitionList(trackers.filter { !$0.isPaused }.map(\.partition))
        let resumed = PartitionList(trackers.filter(\.isPaused).map(\.partition))
        unsafe rd_kafka_pause_partitions(client.pointer, paused.pointer)
        unsafe rd_kafka_resume_partitions(client.pointer, resumed.pointer)
        for element in unsafe Array(paused.pointer.elements) + Array(resumed.pointer.elements)
        where element.error == RD_KAFKA_RESP_ERR_NO_ERROR {
            context.trackers[element.partition]?.isPaused.toggle()
        }
        try paused.check()
        try resumed.check()
    }
}
