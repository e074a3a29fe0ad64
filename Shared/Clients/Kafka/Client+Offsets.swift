internal import CKafka

/// Batched offset queries whose timeouts also hold while leaders are unavailable or frozen.
/// `rd_kafka_query_watermark_offsets` has no effective timeout (librdkafka 2.0.2 to 2.8 ignore it) and is not used.
extension Client {
    /// - Throws: If one of the brokers does not respond in time, even if the others do.
    func offsets(
        at edge: Admin.PartitionEdge, of partitions: some Collection<TopicPartition>, waitMax: Duration
    ) throws(KafkaError) -> [TopicPartition: Int64] {
        if partitions.isEmpty { return [:] }
        let list = PartitionList(capacity: partitions.count)
        for partition in partitions { list.add(partition, offset: edge == .first ? Self.earliest : Self.latest) }
        let code = unsafe rd_kafka_offsets_for_times(pointer, list.pointer, waitMax.millisecondsRoundedUp)
        try KafkaError.check(code, "offsets of \(partitions.count) partitions: \(KafkaError(code).message)")
        var offsets: [TopicPartition: Int64] = [:]
        for element in unsafe list.pointer.elements where element.error == RD_KAFKA_RESP_ERR_NO_ERROR {
            offsets[element.partition] = element.offset
        }
        return offsets
    }

    /// Returns the offsets of the partition's first message and after its last one.
    func range(of partition: TopicPartition, waitMax: Duration) throws(KafkaError) -> Range<Int64> {
        let deadline = ContinuousClock.now + waitMax
        let first = try offsets(at: .first, of: [partition], waitMax: waitMax)[partition]
        let end = try offsets(at: .end, of: [partition], waitMax: deadline - .now)[partition]
        guard let first, let end else {
            throw KafkaError(timeout: "no offsets returned for \(partition)")
        }
        return first..<max(first, end)
    }

    /// See ``Admin/offsetsByLeader(at:of:_:except:)``.
    func offsetsByLeader(
        at edge: Admin.PartitionEdge, of partitions: some Collection<TopicPartition>,
        _ leaders: [TopicPartition: Int32], waitMax: Duration, except silent: some Collection<Int32>
    ) -> LeaderOffsets {
        var led: [Int32: [TopicPartition]] = [:]
        for partition in partitions {
            guard let leader = leaders[partition], !silent.contains(leader) else { continue }
            led[leader, default: []].append(partition)
        }
        return LeaderQuery(self, at: edge, of: led, waitMax: waitMax).run()
    }

    /// - Parameter all: Whether to query all topics of the cluster instead of those that the client uses.
    func metadata(all: Bool, waitMax: Duration) throws(KafkaError) -> ClusterMetadata {
        var pointer: UnsafePointer<rd_kafka_metadata>?
        try KafkaError.check(
            unsafe rd_kafka_metadata(self.pointer, all ? 1 : 0, nil, &pointer, waitMax.millisecondsRoundedUp))
        guard let pointer = unsafe pointer else { throw KafkaError(RD_KAFKA_RESP_ERR__BAD_MSG) }
        defer { unsafe rd_kafka_metadata_destroy(pointer) }
        return unsafe ClusterMetadata(pointer.pointee)
    }

    /// The protocol's timestamps for the beginning and the end (ListOffsets, `timestamp`).
    private static let earliest: Int64 = -2
    private static let latest: Int64 = -1
}

extension Admin {
    /// The beginning or end of a partition.
    package enum PartitionEdge: Sendable {
        /// The offset of the first message; of the next message if there is none.
        case first
        /// The offset after the last message.
        case end
    }

    /// Queries the beginnings or ends of partitions from each leader separately, several concurrently. A leader that
    /// does not respond in time does not affect the partitions of others.
    ///
    /// Takes at most twice `waitMax`.
    ///
    /// - Parameters:
    ///   - metadata: The leaders; a partition without a leader is not queried.
    ///   - silent: Brokers that are not queried because they did not respond before.
    package borrowing func offsetsByLeader(
        at edge: PartitionEdge, of partitions: some Collection<TopicPartition>, _ metadata: ClusterMetadata,
        except silent: some Collection<Int32> = []
    ) -> LeaderOffsets {
        client.offsetsByLeader(at: edge, of: partitions, metadata.leaders, waitMax: waitMax, except: silent)
    }
}
