internal import CKafka

extension Admin {
    /// Says how far a group is, as one that nobody runs (AlterConsumerGroupOffsets).
    ///
    /// - Parameter offsets: By partition the offset of the message that the group reads next.
    /// - Throws: What the broker refused: of a group that has members it takes only what these commit.
    package borrowing func commit(group: String, _ offsets: [TopicPartition: Int64]) throws(KafkaError) {
        if offsets.isEmpty { return }
        let options = try unsafe AdminOptions(
            client.pointer, RD_KAFKA_ADMIN_OP_ALTERCONSUMERGROUPOFFSETS, waitMaxMilliseconds)
        let queue = AnswerQueue(client)
        let list = PartitionList(capacity: offsets.count)
        for (partition, offset) in offsets { list.add(partition, offset: offset) }
        var request = unsafe rd_kafka_AlterConsumerGroupOffsets_new(group, list.pointer)
        unsafe rd_kafka_AlterConsumerGroupOffsets(client.pointer, &request, 1, options.pointer, queue.pointer)
        unsafe rd_kafka_AlterConsumerGroupOffsets_destroy(request)
        let answer = try explaining { () throws(KafkaError) -> Answer in try queue.answer(waitMaxMilliseconds) }
        var count = 0
        let result = unsafe rd_kafka_event_AlterConsumerGroupOffsets_result(answer.pointer)
        guard let groups = unsafe rd_kafka_AlterConsumerGroupOffsets_result_groups(result, &count), count == 1 else {
            throw KafkaError(RD_KAFKA_RESP_ERR__BAD_MSG, "no answer for group \(group)")
        }
        if let error = unsafe rd_kafka_group_result_error(groups[0]) {
            let text = unsafe String(cString: rd_kafka_error_string(error))
            throw KafkaError(unsafe rd_kafka_error_code(error), text)
        }
        guard let answered = unsafe rd_kafka_group_result_partitions(groups[0]) else { return }
        for element in unsafe UnsafeMutablePointer(mutating: answered).elements {
            try KafkaError.check(element.error, "\(element.partition): \(KafkaError(element.error).message)")
        }
    }
}
