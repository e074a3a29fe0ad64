internal import CKafka

/// Where a group goes on in a partition, and what the partition has.
package struct Beginning: Hashable, Sendable {
    package let partition: TopicPartition
    /// Below it the group has finished everything; `nil` when that is not known.
    package let committed: Int64?
    /// The group has committed nothing, or that was forgotten.
    package let isFresh: Bool
    /// The offset of the first message that is still there; `end` when there is none.
    package let first: Int64
    package let end: Int64

    package init(partition: TopicPartition, committed: Int64?, available: Range<Int64>) {
        self.partition = partition
        isFresh = committed == nil
        // Beyond the end: it was committed in content that the broker has lost.
        self.committed = committed.flatMap { $0 <= available.upperBound ? $0 : nil }
        first = available.lowerBound
        end = available.upperBound
    }

    /// Where the group goes on.
    package var start: Int64 { max(committed ?? first, first) }

    /// What was removed before the group has read it: retention does not wait for readers.
    package var expired: Range<Int64> { min(committed ?? 0, first)..<first }
}

extension Consumer {
    /// How long the group's coordinator is waited for: it answers nothing while it holds back a JoinGroup of this
    /// member, which takes part in no rebalance as long as it waits here.
    private static var coordinatorWaitMax: Duration { .seconds(1) }

    /// Asks how far the group is in partitions, and what they have.
    ///
    /// - Returns: Without those that do not tell what they have, as one without a leader; and why the last of them did
    ///   not.
    /// - Throws: When the group's coordinator refuses, or does not answer within a second.
    package mutating func beginnings(
        of partitions: some Collection<TopicPartition>, waitMax: Duration = .seconds(5)
    ) throws(KafkaError) -> (found: [Beginning], failure: KafkaError?) {
        let list = PartitionList(partitions)
        let coordinatorWaitMax = Self.coordinatorWaitMax.millisecondsRoundedUp
        try KafkaError.check(unsafe rd_kafka_committed(client.pointer, list.pointer, coordinatorWaitMax))
        try list.check()
        var beginnings: [Beginning] = []
        var failure: KafkaError?
        for element in unsafe list.pointer.elements {
            do {
                // After one that was waited for in vain the others have to answer at once.
                let waitMax = failure == nil ? waitMax : .milliseconds(200)
                let available = try available(element.partition, waitMax: waitMax)
                beginnings.append(
                    Beginning(partition: element.partition, committed: element.offset, available: available))
            } catch {
                failure = error
            }
        }
        return (beginnings, failure)
    }

    /// The offsets of the partition's first message and after its last one.
    package borrowing func available(
        _ partition: TopicPartition, waitMax: Duration = .seconds(5)
    ) throws(KafkaError) -> Range<Int64> {
        var low: Int64 = 0
        var high: Int64 = 0
        let code = unsafe rd_kafka_query_watermark_offsets(
            client.pointer, partition.topic, partition.partition, &low, &high, waitMax.millisecondsRoundedUp)
        try KafkaError.check(code, "watermarks of \(partition): \(KafkaError(code).message)")
        return low..<max(low, high)
    }

    /// Says where delivery of a partition begins, so that a gap before its first message is seen.
    package mutating func begin(_ partition: TopicPartition, at offset: Int64) {
        context.trackers[partition]?.begin(at: offset)
    }
}
