internal import CKafka

/// Batched queries of partition offsets.
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
