internal import CKafka

/// Detects partitions that have messages but do not deliver any. A pure value, independent of librdkafka.
///
/// A partition is suspected if it was behind its end in two consecutive samples and delivered nothing in between,
/// although the consumer was idle meanwhile.
struct StallDetector {
    private var expected: [TopicPartition: Int64] = [:]
    private var behind: Set<TopicPartition> = []
    private var wasIdle = false
    /// Offsets that another consumer could not read either: control records, which are not messages.
    private var unreadable: [TopicPartition: Int64] = [:]

    /// Records that the consumer had no message to deliver.
    mutating func becameIdle() { wasIdle = true }

    /// - Parameters:
    ///   - expected: The next offset to be delivered by partition.
    ///   - ends: Queries the offsets after the last messages.
    /// - Returns: The suspected partitions, with the offset of the message that should have been delivered.
    mutating func sample(
        _ expected: [TopicPartition: Int64], ends: (Set<TopicPartition>) throws(KafkaError) -> [TopicPartition: Int64]
    ) throws(KafkaError) -> [TopicPartition: Int64] {
        let isSilent = { [self] (partition: TopicPartition, offset: Int64) in
            wasIdle && self.expected[partition] == offset && unreadable[partition] != offset
        }
        let silent = expected.filter { isSilent($0.key, $0.value) }
        wasIdle = false
        self.expected = expected
        let ends = silent.isEmpty ? [:] : try ends(Set(silent.keys))
        let nowBehind = Set(silent.filter { $0.value < ends[$0.key] ?? 0 }.keys)
        defer { behind = nowBehind }
        return silent.filter { behind.contains($0.key) && nowBehind.contains($0.key) }
    }

    mutating func markUnreadable(_ offsets: [TopicPartition: Int64]) { unreadable.merge(offsets) { $1 } }
}

extension Consumer {
    /// Detects partitions that librdkafka has silently stopped delivering. Call it about every 30 s; detection takes
    /// two further calls. A new consumer resumes delivery.
    ///
    /// - Parameter waitMax: The timeout per leader that does not respond, at most three of them, and for the messages.
    /// - Throws: A fatal error with the partition and the offset of a message that another consumer can read; a
    ///   non-fatal error if the brokers do not respond.
    package mutating func checkDelivery(waitMax: Duration = .seconds(2)) throws(KafkaError) {
        var expected: [TopicPartition: Int64] = [:]
        for (partition, tracker) in context.trackers where !context.isPausedAll {
            expected[partition] = tracker.expected
        }
        let suspected = try context.stalls.sample(expected) { (partitions) throws(KafkaError) in
            let (_, ends, failure) = offsets(of: partitions, edges: [.end], waitMax: waitMax)
            if ends.isEmpty, let failure { throw failure }
            return ends
        }
        if suspected.isEmpty { return }
        let readable = try MessageTimestamps(brokers: brokers, properties: properties).load(suspected, waitMax: waitMax)
        context.stalls.markUnreadable(suspected.filter { readable[$0.key] == nil })
        guard let stalled = suspected.first(where: { readable[$0.key] != nil }) else { return }
        throw KafkaError(
            RD_KAFKA_RESP_ERR__FAIL,
            "\(stalled.key) is stalled: its message at offset \(stalled.value) is not delivered",
            isFatal: true, isRetriable: false)
    }
}
