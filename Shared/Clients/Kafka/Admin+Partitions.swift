internal import CKafka

extension Admin {
    /// Increases the number of partitions of a topic (CreatePartitions). Afterwards keys map to other partitions.
    ///
    /// - Parameter count: The new number of partitions; the broker rejects a smaller number than the current one.
    /// - Throws: The broker's error, a timeout, or that the request is not supported.
    package borrowing func setPartitions(of topic: String, to count: Int32) throws(KafkaError) {
        try requireController("adding partitions is not supported")
        let error = ErrorText()
        guard
            let request = unsafe rd_kafka_NewPartitions_new(topic, Int(count), error.pointer, ErrorText.capacity)
        else { throw KafkaError(RD_KAFKA_RESP_ERR__INVALID_ARG, "topic \"\(topic)\": \(error.text)") }
        var requests: [OpaquePointer?] = unsafe [request]
        defer { unsafe rd_kafka_NewPartitions_destroy(request) }
        let options = try unsafe AdminOptions(client.pointer, RD_KAFKA_ADMIN_OP_CREATEPARTITIONS, waitMaxMilliseconds)
        let queue = ResponseQueue(client)
        unsafe rd_kafka_CreatePartitions(client.pointer, &requests, 1, options.pointer, queue.pointer)
        let response = try addingRejection { () throws(KafkaError) -> AdminResponse in
            try queue.response(waitMaxMilliseconds)
        }
        try response.checkPartitions(of: topic)
    }
}

extension AdminResponse {
    fileprivate func checkPartitions(of topic: String) throws(KafkaError) {
        var count = 0
        let result = unsafe rd_kafka_event_CreatePartitions_result(pointer)
        guard let results = unsafe rd_kafka_CreatePartitions_result_topics(result, &count), count == 1,
            let outcome = unsafe results[0]
        else { throw KafkaError(RD_KAFKA_RESP_ERR__BAD_MSG, "no result for topic \(topic)") }
        let text = unsafe rd_kafka_topic_result_error_string(outcome).map { unsafe String(cString: $0) }
        try KafkaError.check(unsafe rd_kafka_topic_result_error(outcome), text)
    }
}
