internal import CKafka

extension Admin {
    /// Gives a topic more partitions (CreatePartitions). Keys go to other partitions from then on.
    ///
    /// - Parameter count: How many it has afterwards; the broker refuses fewer than there are.
    /// - Throws: What the broker refuses, that it did not answer, or does not know the request.
    package borrowing func setPartitions(of topic: String, to count: Int32) throws(KafkaError) {
        try checkHasController("adding partitions is not supported")
        let error = ErrorText()
        guard
            let request = unsafe rd_kafka_NewPartitions_new(topic, Int(count), error.pointer, ErrorText.capacity)
        else { throw KafkaError(RD_KAFKA_RESP_ERR__INVALID_ARG, "topic \"\(topic)\": \(error.text)") }
        var requests: [OpaquePointer?] = unsafe [request]
        defer { unsafe rd_kafka_NewPartitions_destroy(request) }
        let options = try unsafe AdminOptions(client.pointer, RD_KAFKA_ADMIN_OP_CREATEPARTITIONS, waitMaxMilliseconds)
        let queue = AnswerQueue(client)
        unsafe rd_kafka_CreatePartitions(client.pointer, &requests, 1, options.pointer, queue.pointer)
        let answer = try explaining { () throws(KafkaError) -> Answer in try queue.answer(waitMaxMilliseconds) }
        try answer.checkPartitions(of: topic)
    }
}

extension Answer {
    fileprivate func checkPartitions(of topic: String) throws(KafkaError) {
        var count = 0
        let result = unsafe rd_kafka_event_CreatePartitions_result(pointer)
        guard let results = unsafe rd_kafka_CreatePartitions_result_topics(result, &count), count == 1,
            let outcome = unsafe results[0]
        else { throw KafkaError(RD_KAFKA_RESP_ERR__BAD_MSG, "no answer about topic \(topic)") }
        let text = unsafe rd_kafka_topic_result_error_string(outcome).map { unsafe String(cString: $0) }
        try KafkaError.check(unsafe rd_kafka_topic_result_error(outcome), text)
    }
}
