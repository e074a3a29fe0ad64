internal import CKafka

/// Committed offsets of consumer groups.
extension Admin {
    /// Fetches the committed offsets of groups (OffsetFetch), with one concurrent request per group.
    ///
    /// - Parameter groups: The partitions to fetch by group; `nil` fetches all committed ones.
    /// - Returns: The offsets or the error by group; a partition without a committed offset is absent.
    package borrowing func committed(
        _ groups: [String: [TopicPartition]?]
    ) throws(KafkaError) -> [String: Result<[TopicPartition: Int64], KafkaError>] {
        try coordinators.request(
            RD_KAFKA_ADMIN_OP_LISTCONSUMERGROUPOFFSETS, of: groups.keys.sorted(), waitMax: waitMax,
            send: { group, client, options, queue in
                var request: OpaquePointer?
                if let partitions = groups[group] ?? nil {
                    let list = PartitionList(partitions)
                    unsafe request = rd_kafka_ListConsumerGroupOffsets_new(group, list.pointer)
                } else {
                    unsafe request = rd_kafka_ListConsumerGroupOffsets_new(group, nil)
                }
                unsafe rd_kafka_ListConsumerGroupOffsets(client.pointer, &request, 1, options.pointer, queue.pointer)
                unsafe rd_kafka_ListConsumerGroupOffsets_destroy(request)
            },
            read: { response throws(KafkaError) in
                var count = 0
                let result = unsafe rd_kafka_event_ListConsumerGroupOffsets_result(response.pointer)
                let groups = unsafe rd_kafka_ListConsumerGroupOffsets_result_groups(result, &count)
                return try unsafe Self.offsets(count == 1 ? groups?.pointee : nil)
            })
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

    /// Reads a group's result.
    private static func offsets(_ group: OpaquePointer?) throws(KafkaError) -> [TopicPartition: Int64] {
        guard let group = unsafe group else { throw KafkaError(RD_KAFKA_RESP_ERR__BAD_MSG, "no group in the response") }
        if let error = unsafe rd_kafka_group_result_error(group) {
            let text = unsafe String(cString: rd_kafka_error_string(error))
            throw KafkaError(unsafe rd_kafka_error_code(error), text)
        }
        var offsets: [TopicPartition: Int64] = [:]
        guard let answered = unsafe rd_kafka_group_result_partitions(group) else { return offsets }
        for element in unsafe UnsafeMutablePointer(mutating: answered).elements {
            try KafkaError.check(element.error, "\(element.partition): \(KafkaError(element.error).message)")
            offsets[element.partition] = element.offset
        }
        return offsets
    }
}
