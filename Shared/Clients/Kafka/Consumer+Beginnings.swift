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

    /// Queries the group's committed offsets, and the partitions' first and end offsets.
    ///
    /// Sends one request to the coordinator, one for the leaders, and two to each leader, for any number of partitions.
    ///
    /// - Parameter waitMax: For a response. Both queries of leaders that do not respond take at most twice as long.
    /// - Returns: Without partitions that have no answer, such as one without a leader; and the error of one of them.
    /// - Throws: When the group's coordinator refuses, or does not answer within a second.
    package mutating func beginnings(
        of partitions: some Collection<TopicPartition>, waitMax: Duration = .seconds(2)
    ) throws(KafkaError) -> (found: [Beginning], failure: KafkaError?) {
        let list = PartitionList(partitions)
        let coordinatorWaitMax = Self.coordinatorWaitMax.millisecondsRoundedUp
        try KafkaError.check(unsafe rd_kafka_committed(client.pointer, list.pointer, coordinatorWaitMax))
        try list.check()
        let (firsts, ends, failure) = offsets(of: partitions, waitMax: waitMax)
        let beginnings = unsafe list.pointer.elements.compactMap { element -> Beginning? in
            guard let first = firsts[element.partition], let end = ends[element.partition] else { return nil }
            return Beginning(
                partition: element.partition, committed: element.offset, available: first..<max(first, end))
        }
        return (beginnings, failure)
    }

    /// The offsets of partitions' first messages.
    ///
    /// - Returns: Without partitions that have no answer, and the error of one of them.
    package borrowing func firsts(
        of partitions: some Collection<TopicPartition>, waitMax: Duration = .seconds(2)
    ) -> (found: [TopicPartition: Int64], failure: KafkaError?) {
        let (firsts, _, failure) = offsets(of: partitions, edges: [.first], waitMax: waitMax)
        return (firsts, failure)
    }

    /// The same of one partition.
    package borrowing func first(
        of partition: TopicPartition, waitMax: Duration = .seconds(5)
    ) throws(KafkaError) -> Int64 {
        let first = try client.offsets(at: .first, of: [partition], waitMax: waitMax)[partition]
        guard let first else { throw KafkaError(timeout: "no offsets returned for \(partition)") }
        return first
    }

    borrowing func offsets(
        of partitions: some Collection<TopicPartition>, edges: Set<Admin.PartitionEdge> = [.first, .end],
        waitMax: Duration
    ) -> (firsts: [TopicPartition: Int64], ends: [TopicPartition: Int64], failure: KafkaError?) {
        var found: [Admin.PartitionEdge: [TopicPartition: Int64]] = [:]
        var silent: [Int32: KafkaError] = [:]
        do {
            let leaders = try leaders(waitMax: waitMax)
            for edge in edges {
                let result = client.offsetsByLeader(
                    at: edge, of: partitions, leaders, waitMax: waitMax, except: silent.keys)
                found[edge] = result.offsets
                silent.merge(result.silent) { $1 }
            }
            var failure = silent.values.first
            let missing = partitions.first { partition in edges.contains { found[$0]?[partition] == nil } }
            if failure == nil, let missing { failure = KafkaError(timeout: "no offsets returned for \(missing)") }
            return (found[.first] ?? [:], found[.end] ?? [:], failure)
        } catch {
            return ([:], [:], error)
        }
    }

    /// Queries any broker for the leaders; if it does not answer, the retry is likely to reach another one.
    private borrowing func leaders(waitMax: Duration) throws(KafkaError) -> [TopicPartition: Int32] {
        do {
            return try client.metadata(all: false, waitMax: waitMax / 2).leaders
        } catch {
            guard error.isRetriable else { throw error }
            return try client.metadata(all: false, waitMax: waitMax / 2).leaders
        }
    }

    /// Says where delivery of a partition begins, so that a gap before its first message is seen.
    package mutating func begin(_ partition: TopicPartition, at offset: Int64) {
        context.trackers[partition]?.begin(at: offset)
    }
}
