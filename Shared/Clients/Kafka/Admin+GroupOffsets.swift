internal import CKafka

/// Committed offsets of consumer groups.
extension Admin {
    /// Requests what groups have committed (OffsetFetch), one request each, all at a time.
    ///
    /// - Parameter groups: Of each the partitions that are asked for; `nil` asks for all that it has committed.
    /// - Returns: By group, its offsets or why they are not known; a partition of which nothing is committed is absent.
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
            read: { answer throws(KafkaError) in
                var count = 0
                let result = unsafe rd_kafka_event_ListConsumerGroupOffsets_result(answer.pointer)
                let groups = unsafe rd_kafka_ListConsumerGroupOffsets_result_groups(result, &count)
                return try unsafe Self.offsets(count == 1 ? groups?.pointee : nil)
            })
    }

    /// Commits offsets for a group that has no members (AlterConsumerGroupOffsets).
    ///
    /// - Parameter offsets: By partition the offset of the message that the group reads next.
    /// - Throws: What the broker refused: of a group that has members it takes only what these commit.
    package borrowing func commit(group: String, _ offsets: [TopicPartition: Int64]) throws(KafkaError) {
        if offsets.isEmpty { return }
        let answers = try coordinators.request(
            RD_KAFKA_ADMIN_OP_ALTERCONSUMERGROUPOFFSETS, of: [group], waitMax: waitMax,
            send: { group, client, options, queue in
                let list = PartitionList(capacity: offsets.count)
                for (partition, offset) in offsets { list.add(partition, offset: offset) }
                var request = unsafe rd_kafka_AlterConsumerGroupOffsets_new(group, list.pointer)
                unsafe rd_kafka_AlterConsumerGroupOffsets(client.pointer, &request, 1, options.pointer, queue.pointer)
                unsafe rd_kafka_AlterConsumerGroupOffsets_destroy(request)
            },
            read: { answer throws(KafkaError) in
                var count = 0
                let result = unsafe rd_kafka_event_AlterConsumerGroupOffsets_result(answer.pointer)
                let groups = unsafe rd_kafka_AlterConsumerGroupOffsets_result_groups(result, &count)
                return try unsafe Self.offsets(count == 1 ? groups?.pointee : nil)
            })
        _ = try answers[group]?.get()
    }

    /// The content of an answer about its group.
    private static func offsets(_ group: OpaquePointer?) throws(KafkaError) -> [TopicPartition: Int64] {
        guard let group = unsafe group else { throw KafkaError(RD_KAFKA_RESP_ERR__BAD_MSG, "no group in an answer") }
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
