import Kafka

/// What it means that offsets are missing before a message, or went backwards. A value: it knows no Kafka.
struct Gaps {
    enum Gap: Equatable {
        /// They were removed before they were delivered.
        case removed(MissedOffsets)
        /// Reading the partition again may bring them.
        case unexplained
    }

    /// The last message before which a gap was answered.
    private var answered: [TopicPartition: Int64] = [:]
    /// Partitions that were read again because of a gap. One that is there again stays: compaction and transactions
    /// leave such gaps, any number of them, and nothing is missing in them.
    private var wereReadAgain: Set<TopicPartition> = []

    /// - Parameters:
    ///   - offset: The message's, and where it was expected.
    ///   - first: Asks for the offset of the first message that the partition still has.
    /// - Returns: `nil` when nothing is missing, or it is known.
    func gap(
        before offset: Int64, expected: Int64, in partition: TopicPartition, first: () throws(KafkaError) -> Int64
    ) throws(KafkaError) -> Gap? {
        if offset == expected { return nil }
        // Backwards: the broker lost its content.
        if offset < expected { return .unexplained }
        if let known = answered[partition], offset <= known { return nil }
        if try first() > expected { return .removed(MissedOffsets(partition: partition, offsets: expected..<offset)) }
        return wereReadAgain.contains(partition) ? nil : .unexplained
    }

    /// What was missing before the message is asked for.
    mutating func wasAnswered(before offset: Int64, in partition: TopicPartition) { answered[partition] = offset }

    /// The partition is read from its beginning because of a gap before the message.
    mutating func wasReadAgain(before offset: Int64, expected: Int64, in partition: TopicPartition) {
        if offset < expected { forget(partition) } else { wereReadAgain.insert(partition) }
    }

    mutating func forget(_ partition: TopicPartition) {
        answered[partition] = nil
        wereReadAgain.remove(partition)
    }
}
