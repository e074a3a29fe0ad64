internal import CKafka

@testable package import Kafka

extension Admin {
    /// Returns the committed offsets of a group for these partitions; partitions without a commit are absent.
    package borrowing func committed(
        group: String, _ partitions: [TopicPartition]
    ) throws -> [TopicPartition: Int64] {
        try committed([group: partitions])[group]?.get() ?? [:]
    }

    /// Commits offsets for a group that has no members (AlterConsumerGroupOffsets).
    ///
    /// - Parameter offsets: The offset of the next message to read by partition.
    /// - Throws: The broker's error, such as for a group that has members: only they can commit.
    package borrowing func commit(group: String, _ offsets: [TopicPartition: Int64]) throws(KafkaError) {
        if offsets.isEmpty { return }
        let responses = try coordinators.request(
            RD_KAFKA_ADMIN_OP_ALTERCONSUMERGROUPOFFSETS, of: [group], waitMax: waitMax,
            send: { group, client, options, queue in
                let list = PartitionList(capacity: offsets.count)
                for (partition, offset) in offsets { list.add(partition, offset: offset) }
                var request = unsafe rd_kafka_AlterConsumerGroupOffsets_new(group, list.pointer)
                unsafe rd_kafka_AlterConsumerGroupOffsets(client.pointer, &request, 1, options.pointer, queue.pointer)
                unsafe rd_kafka_AlterConsumerGroupOffsets_destroy(request)
            },
            read: { response throws(KafkaError) in
                var count = 0
                let result = unsafe rd_kafka_event_AlterConsumerGroupOffsets_result(response.pointer)
                let groups = unsafe rd_kafka_AlterConsumerGroupOffsets_result_groups(result, &count)
                return try unsafe Self.offsets(count == 1 ? groups?.pointee : nil)
            })
        _ = try responses[group]?.get()
    }

    /// Queries the beginnings or ends of partitions with one request (ListOffsets) to each leader.
    ///
    /// - Returns: The offsets; partitions without a response, such as one without a leader, are absent.
    /// - Throws: If one of the brokers does not respond in time.
    package borrowing func offsets(
        at edge: PartitionEdge, of partitions: some Collection<TopicPartition>
    ) throws(KafkaError) -> [TopicPartition: Int64] {
        try addingRejection { () throws(KafkaError) in
            try client.offsets(at: edge, of: partitions, waitMax: waitMax)
        }
    }

    /// Returns the offsets of the partition's first message and after its last one.
    package borrowing func watermarks(_ partition: TopicPartition) throws(KafkaError) -> Range<Int64> {
        try addingRejection { () throws(KafkaError) in try client.range(of: partition, waitMax: waitMax) }
    }
}
