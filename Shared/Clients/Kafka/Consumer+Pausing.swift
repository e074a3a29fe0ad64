internal import CKafka

/// Pausing. librdkafka drops what it is told of a partition when it starts that partition itself at the same moment, or
/// drops the start, and says nothing (its issues 2190 and 5591): the partition would stay paused, or never be read. So
/// it is told only of partitions that have delivered something since they were assigned: their start is over.
extension Consumer {
    /// Stops the delivery of a partition until `resume`; what was fetched of it is dropped and fetched again then. What
    /// is being fetched at this moment may still come, and may come again. Ends with the assignment.
    package mutating func pause(_ partition: TopicPartition) throws(KafkaError) {
        context.paused.insert(partition)
        context.stalls = StallWatch()
        try setPaused([partition])
    }

    /// Undoes `pause`. While `pauseAll` is in force, the partition stays paused.
    package mutating func resume(_ partition: TopicPartition) throws(KafkaError) {
        context.paused.remove(partition)
        try setPaused([partition])
    }

    /// Stops all delivery until `resumeAll`. A partition that has delivered nothing yet, or is assigned later, is
    /// stopped by its first messages, which are delivered. Keep calling `nextBatch`: the consumer stays in its group.
    package mutating func pauseAll() throws(KafkaError) {
        context.isPausedAll = true
        context.stalls = StallWatch()
        try setPaused(assignment)
    }

    /// Undoes `pauseAll`; partitions paused one by one stay so.
    package mutating func resumeAll() throws(KafkaError) {
        context.isPausedAll = false
        try setPaused(assignment)
    }

    /// Pauses partitions that are to be, and could not be before their first message.
    func pauseStarted() {
        guard context.isPausedAll || !context.paused.isEmpty else { return }
        // Refused only for a partition that librdkafka does not know: the next batch tries again.
        try? setPaused(assignment)
    }

    private func setPaused(_ partitions: Set<TopicPartition>) throws(KafkaError) {
        let trackers = partitions.compactMap { context.trackers[$0] }
            .filter { $0.isStarted && $0.isPaused != context.isPaused($0.partition) }
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
