internal import CKafka

/// What brokers tell of many partitions at a time.
extension Admin {
    /// One end of a partition.
    package enum PartitionEdge: Sendable {
        /// The offset of its first message; of the next one when there is none.
        case first
        /// The offset after its last message.
        case end
    }

    /// Asks where partitions begin or end, with one request (ListOffsets) to each broker that leads some of them.
    ///
    /// - Returns: A partition that has no answer, as one without a leader, is absent.
    /// - Throws: When one of the brokers does not answer in time. `offsetsByLeader` returns the others' offsets then.
    package borrowing func offsets(
        at edge: PartitionEdge, of partitions: some Collection<TopicPartition>
    ) throws(KafkaError) -> [TopicPartition: Int64] {
        try explaining { () throws(KafkaError) in
            try client.offsets(at: edge, of: partitions, waitMax: waitMax)
        }
    }

    /// Returns where partitions begin or end, each leader queried on its own and several at a time: a leader that does
    /// not respond in time hides no other's partitions.
    ///
    /// Takes at most twice `waitMax`.
    ///
    /// - Parameters:
    ///   - metadata: Names the leaders; a partition without one is not queried.
    ///   - silent: Brokers that are not queried.
    package borrowing func offsetsByLeader(
        at edge: PartitionEdge, of partitions: some Collection<TopicPartition>, _ metadata: ClusterMetadata,
        except silent: some Collection<Int32> = []
    ) -> LeaderOffsets {
        client.offsetsByLeader(at: edge, of: partitions, metadata.leaders, waitMax: waitMax, except: silent)
    }
}
