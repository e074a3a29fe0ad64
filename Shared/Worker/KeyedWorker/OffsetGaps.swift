import Kafka

/// Classifies gaps in a partition's offsets. A value that does not access Kafka.
struct OffsetGaps {
    enum Gap: Equatable {
        /// Kafka removed the messages before they were delivered.
        case removed(ExpiredOffsets)
        /// Reading the partition again may deliver them.
        case unexplained
    }

    /// The offset up to which republication of missing messages was requested.
    private var resolved: [TopicPartition: Int64] = [:]
    /// Partitions that were read again because of a gap. A gap that is still there afterwards is harmless: compaction
    /// and transactions leave any number of them.
    private var reread: Set<TopicPartition> = []

    /// - Parameters:
    ///   - offset: The message's offset; `expected` is the next one after the previous message.
    ///   - first: Queries the offset of the partition's first message.
    /// - Returns: `nil` if nothing is missing, or the gap is already handled.
    func gap(
        before offset: Int64, expected: Int64, in partition: TopicPartition, first: () throws(KafkaError) -> Int64
    ) throws(KafkaError) -> Gap? {
        if offset == expected { return nil }
        // The offset moved backwards: the broker lost its content.
        if offset < expected { return .unexplained }
        if let end = resolved[partition], offset <= end { return nil }
        if try first() > expected { return .removed(ExpiredOffsets(partition: partition, offsets: expected..<offset)) }
        return reread.contains(partition) ? nil : .unexplained
    }

    /// Republication of the messages missing before `offset` was requested.
    mutating func resolve(before offset: Int64, in partition: TopicPartition) { resolved[partition] = offset }

    /// The partition is read from its beginning because of a gap before the message.
    mutating func didReread(before offset: Int64, expected: Int64, in partition: TopicPartition) {
        if offset < expected { reset(partition) } else { reread.insert(partition) }
    }

    mutating func reset(_ partition: TopicPartition) {
        resolved[partition] = nil
        reread.remove(partition)
    }
}
