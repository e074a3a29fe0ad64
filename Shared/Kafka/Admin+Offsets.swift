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
    /// - Throws: When one of the brokers does not answer in time. `offsetsByLeader` tells of the others then.
    package borrowing func offsets(
        at edge: PartitionEdge, of partitions: some Collection<TopicPartition>
    ) throws(KafkaError) -> [TopicPartition: Int64] {
        try explaining { () throws(KafkaError) in
            try client.offsets(at: edge, of: partitions, waitMax: waitMax)
        }
    }

    /// Returns where partitions begin or end, each leader queried on its own: one that does not answer in time hides no
    /// other's partitions.
    ///
    /// Takes at most `waitMax` for each silent broker, and stops at the third.
    ///
    /// - Parameters:
    ///   - metadata: Names the leaders; a partition without one is not queried.
    ///   - silent: Brokers that did not answer in time, with the error: they are not queried, and new ones are added.
    /// - Returns: A partition that has no answer is absent.
    package borrowing func offsetsByLeader(
        at edge: PartitionEdge, of partitions: some Collection<TopicPartition>, _ metadata: ClusterMetadata,
        silent: inout [Int32: KafkaError]
    ) -> [TopicPartition: Int64] {
        client.offsetsByLeader(at: edge, of: partitions, metadata.leaders, waitMax: waitMax, silent: &silent)
    }

    /// Asks what groups have committed, with one request (OffsetFetch) each, all of them on their way at a time.
    ///
    /// - Parameter groups: Of each the partitions that are asked for; `nil` asks for all that it has committed.
    /// - Returns: By group, its offsets or why they are not known; a partition of which nothing is committed is absent.
    package borrowing func committed(
        _ groups: [String: [TopicPartition]?]
    ) throws(KafkaError) -> [String: Result<[TopicPartition: Int64], KafkaError>] {
        let options = try unsafe AdminOptions(
            client.pointer, RD_KAFKA_ADMIN_OP_LISTCONSUMERGROUPOFFSETS, waitMaxMilliseconds)
        let queue = AnswerQueue(client)
        for (group, partitions) in groups {
            var request: OpaquePointer?
            if let partitions {
                let list = PartitionList(partitions)
                unsafe request = rd_kafka_ListConsumerGroupOffsets_new(group, list.pointer)
            } else {
                unsafe request = rd_kafka_ListConsumerGroupOffsets_new(group, nil)
            }
            unsafe rd_kafka_ListConsumerGroupOffsets(client.pointer, &request, 1, options.pointer, queue.pointer)
            unsafe rd_kafka_ListConsumerGroupOffsets_destroy(request)
        }
        var found: [String: Result<[TopicPartition: Int64], KafkaError>] = [:]
        var failure: KafkaError?
        for _ in groups {
            do {
                let answer = try explaining { () throws(KafkaError) -> Answer in
                    try queue.answer(waitMaxMilliseconds)
                }
                if let (group, offsets) = answer.groupOffsets { found[group] = offsets }
            } catch {
                // It does not say of which group it is the answer.
                failure = error
            }
        }
        for group in groups.keys where found[group] == nil {
            found[group] = .failure(failure ?? KafkaError(RD_KAFKA_RESP_ERR__BAD_MSG, "no answer for group \(group)"))
        }
        return found
    }
}

extension Answer {
    /// What an answer to ListConsumerGroupOffsets says of its group.
    fileprivate var groupOffsets: (group: String, offsets: Result<[TopicPartition: Int64], KafkaError>)? {
        var count = 0
        let result = unsafe rd_kafka_event_ListConsumerGroupOffsets_result(pointer)
        guard let groups = unsafe rd_kafka_ListConsumerGroupOffsets_result_groups(result, &count), count == 1,
            let name = unsafe rd_kafka_group_result_name(groups[0])
        else { return nil }
        let group = unsafe String(cString: name)
        if let error = unsafe rd_kafka_group_result_error(groups[0]) {
            let text = unsafe String(cString: rd_kafka_error_string(error))
            return (group, .failure(KafkaError(unsafe rd_kafka_error_code(error), text)))
        }
        var offsets: [TopicPartition: Int64] = [:]
        if let answered = unsafe rd_kafka_group_result_partitions(groups[0]) {
            for element in unsafe UnsafeMutablePointer(mutating: answered).elements {
                guard element.error == RD_KAFKA_RESP_ERR_NO_ERROR else {
                    let error = KafkaError(
                        element.error, "\(element.partition): \(KafkaError(element.error).message)")
                    return (group, .failure(error))
                }
                offsets[element.partition] = element.offset
            }
        }
        return (group, .success(offsets))
    }
}
