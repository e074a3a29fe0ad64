internal import CKafka

/// Which partitions deliver nothing although they have something. A value: it knows no librdkafka.
///
/// Each look says where the partitions are. One that was behind its end at two looks in a row, and has delivered
/// nothing between them, although the consumer had nothing left to deliver in the meantime, is suspected.
struct StallWatch {
    private var expected: [TopicPartition: Int64] = [:]
    private var behind: Set<TopicPartition> = []
    private var hasRunDry = false
    /// Nothing could be read there by others either: what is left are marks that are no messages.
    private var unreadable: [TopicPartition: Int64] = [:]

    /// The consumer had nothing to deliver.
    mutating func ranDry() { hasRunDry = true }

    /// - Parameters:
    ///   - expected: The offset that each partition is to deliver next.
    ///   - ends: Asks for the offsets after the last messages.
    /// - Returns: The suspected ones, with the offset of the message that they should have delivered.
    mutating func look(
        _ expected: [TopicPartition: Int64], ends: (Set<TopicPartition>) throws(KafkaError) -> [TopicPartition: Int64]
    ) throws(KafkaError) -> [TopicPartition: Int64] {
        let isSilent = { [self] (partition: TopicPartition, offset: Int64) in
            hasRunDry && self.expected[partition] == offset && unreadable[partition] != offset
        }
        let silent = expected.filter { isSilent($0.key, $0.value) }
        hasRunDry = false
        self.expected = expected
        let ends = silent.isEmpty ? [:] : try ends(Set(silent.keys))
        let nowBehind = Set(silent.filter { $0.value < ends[$0.key] ?? 0 }.keys)
        defer { behind = nowBehind }
        return silent.filter { behind.contains($0.key) && nowBehind.contains($0.key) }
    }

    mutating func cannotBeRead(_ offsets: [TopicPartition: Int64]) { unreadable.merge(offsets) { $1 } }
}

extension Consumer {
    /// Looks for partitions that librdkafka does not deliver any more, without a word: to be called every half minute
    /// or so, as it takes two further calls until one is found. A new consumer delivers them.
    ///
    /// - Parameter waitMax: For each leader that does not answer, at most three of them, and for the messages.
    /// - Throws: A fatal error that names the partition and the offset at which others read a message; or, when the
    ///   brokers did not answer, one that is not.
    package mutating func checkDelivery(waitMax: Duration = .seconds(2)) throws(KafkaError) {
        var expected: [TopicPartition: Int64] = [:]
        for (partition, tracker) in context.trackers where !context.isPaused(partition) {
            expected[partition] = tracker.expected
        }
        let suspected = try context.stalls.look(expected) { (partitions) throws(KafkaError) in
            let (_, ends, failure) = offsets(of: partitions, edges: [.end], waitMax: waitMax)
            if ends.isEmpty, let failure { throw failure }
            return ends
        }
        if suspected.isEmpty { return }
        let readable = try WrittenTimes(brokers: brokers, properties: properties).load(suspected, waitMax: waitMax)
        context.stalls.cannotBeRead(suspected.filter { readable[$0.key] == nil })
        guard let stalled = suspected.first(where: { readable[$0.key] != nil }) else { return }
        throw KafkaError(
            RD_KAFKA_RESP_ERR__FAIL,
            "\(stalled.key) delivers nothing, although it has a message at offset \(stalled.value)",
            isFatal: true, isRetriable: false)
    }
}
