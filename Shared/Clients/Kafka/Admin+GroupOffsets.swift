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

    /// Reads a group's result.
    static func offsets(_ group: OpaquePointer?) throws(KafkaError) -> [TopicPartition: Int64] {
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
