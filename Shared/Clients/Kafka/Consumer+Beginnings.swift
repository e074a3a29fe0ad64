internal import CKafka

/// A group's committed offset in a partition, and the offsets that are available.
package struct Beginning: Hashable, Sendable {
    package let partition: TopicPartition
    /// The group has finished all messages below it; `nil` if unknown.
    package let committed: Int64?
    /// Whether the group has no committed offset, or it has expired.
    package let isFresh: Bool
    /// The offset of the first available message; `end` if there is none.
    package let first: Int64
    package let end: Int64

    package init(partition: TopicPartition, committed: Int64?, available: Range<Int64>) {
        self.partition = partition
        isFresh = committed == nil
        // A committed offset beyond the end refers to content that the broker has lost.
        self.committed = committed.flatMap { $0 <= available.upperBound ? $0 : nil }
        first = available.lowerBound
        end = available.upperBound
    }

    /// The offset at which the group resumes.
    package var start: Int64 { max(committed ?? first, first) }

    /// The offsets removed by retention before the group has read them.
    package var expired: Range<Int64> { min(committed ?? 0, first)..<first }
}

extension Consumer {
    /// The timeout for the group's coordinator. It does not respond while it holds back a JoinGroup of this member, and
    /// the member takes no part in a rebalance while it waits here.
    private static var coordinatorWaitMax: Duration { .seconds(1) }

    /// Queries the group's committed offsets, and the partitions' first and end offsets.
    ///
    /// Sends one request to the coordinator, one for the leaders, and two to each leader, independent of the number of
    /// partitions.
    ///
    /// - Parameter waitMax: The timeout per request. If leaders do not respond, both queries take at most twice as
    ///   long.
    /// - Returns: The partitions with a response, and the error of one without, such as a partition without a leader.
    /// - Throws: If the group's coordinator returns an error or does not respond within one second.
    package mutating func beginnings(
        of partitions: some Collection<TopicPartition>, waitMax: Duration = .seconds(2)
    ) throws(KafkaError) -> (found: [Beginning], failure: KafkaError?) {
        let list = PartitionList(partitions)
        let coordinatorWaitMax = Self.coordinatorWaitMax.millisecondsRoundedUp
        try KafkaError.check(unsafe rd_kafka_committed(client.pointer, list.pointer, coordinatorWaitMax))
        try list.check()
        let (firstOffsets, ends, failure) = offsets(of: partitions, waitMax: waitMax)
        let beginnings = unsafe list.pointer.elements.compactMap { element -> Beginning? in
            guard let first = firstOffsets[element.partition], let end = ends[element.partition] else { return nil }
            return Beginning(
                partition: element.partition, committed: element.offset, available: first..<max(first, end))
        }
        return (beginnings, failure)
    }

    /// Queries the offsets of partitions' first messages.
    ///
    /// - Returns: The partitions with a response, and the error of one without.
    package borrowing func firstOffsets(
        of partitions: some Collection<TopicPartition>, waitMax: Duration = .seconds(2)
    ) -> (found: [TopicPartition: Int64], failure: KafkaError?) {
        let (firstOffsets, _, failure) = offsets(of: partitions, edges: [.first], waitMax: waitMax)
        return (firstOffsets, failure)
    }

    /// Queries the offset of a partition's first message.
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
    ) -> (firstOffsets: [TopicPartition: Int64], ends: [TopicPartition: Int64], failure: KafkaError?) {
        var offsets: [Admin.PartitionEdge: [TopicPartition: Int64]] = [:]
        var silent: [Int32: KafkaError] = [:]
        do {
            let leaders = try leaders(waitMax: waitMax)
            for edge in edges {
                let result = client.offsetsByLeader(
                    at: edge, of: partitions, leaders, waitMax: waitMax, except: silent.keys)
                offsets[edge] = result.offsets
                silent.merge(result.silent) { $1 }
            }
            var failure = silent.values.first
            let missing = partitions.first { partition in edges.contains { offsets[$0]?[partition] == nil } }
            if failure == nil, let missing { failure = KafkaError(timeout: "no offsets returned for \(missing)") }
            return (offsets[.first] ?? [:], offsets[.end] ?? [:], failure)
        } catch {
            return ([:], [:], error)
        }
    }

    /// Queries any broker for the leaders; if it does not respond, a retry is likely to reach another one.
    private borrowing func leaders(waitMax: Duration) throws(KafkaError) -> [TopicPartition: Int32] {
        do {
            return try client.metadata(all: false, waitMax: waitMax / 2).leaders
        } catch {
            guard error.isRetriable else { throw error }
            return try client.metadata(all: false, waitMax: waitMax / 2).leaders
        }
    }

    /// Records the offset at which delivery of a partition starts, in order to detect a gap before its first message.
    package mutating func begin(_ partition: TopicPartition, at offset: Int64) {
        context.trackers[partition]?.begin(at: offset)
    }

    /// Returns the end as of the last fetch; `nil` before the first.
    private func cachedEnd(of partition: TopicPartition) -> Int64? {
        var low: Int64 = -1
        var high: Int64 = -1
        unsafe rd_kafka_get_watermark_offsets(client.pointer, partition.topic, partition.partition, &low, &high)
        return high < 0 ? nil : high
    }

    /// Whether the partition is assigned, and the broker has responded to a fetch of it, even without a message.
    package func hasFetched(_ partition: TopicPartition) -> Bool {
        context.trackers[partition].map { $0.isStarted || cachedEnd(of: partition) != nil } ?? false
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
        guard hasFetched(partition) else {
            throw KafkaError(RD_KAFKA_RESP_ERR__STATE, "no message of \(partition) was fetched yet")
        }
        let list = PartitionList()
        list.add(partition, offset: Int64(RD_KAFKA_OFFSET_BEGINNING))
        let limit = Self.seekLimit(waitMax, version: rd_kafka_version())
        if let error = unsafe rd_kafka_seek_partitions(client.pointer, list.pointer, limit) {
            throw unsafe KafkaError(consuming: error)
        }
        try list.check()
        context.restart(tracker)
    }

    /// Returns the limit to pass to `rd_kafka_seek_partitions` of one partition.
    ///
    /// In milliseconds; versions before 2.1.0 interpret it as microseconds (librdkafka pull request 4230). Without the
    /// conversion, a client thread without CPU time for a few milliseconds causes a timeout.
    ///
    /// - Parameter version: The version that `rd_kafka_version` returns.
    package static func seekLimit(_ waitMax: Duration, version: Int32) -> Int32 {
        (version < 0x0201_0000 ? min(waitMax, .seconds(2000)) * 1000 : waitMax).millisecondsRoundedUp
    }
}
