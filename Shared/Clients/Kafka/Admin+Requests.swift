internal import CKafka

/// Owns the `rd_kafka_NewTopic_t`s of one request.
@safe final class NewTopicHandles {
    private var pointers: [OpaquePointer?] = unsafe []

    init(_ topics: [NewTopic]) throws(KafkaError) {
        for topic in topics {
            let error = ErrorText()
            guard
                let pointer = unsafe rd_kafka_NewTopic_new(
                    topic.name, topic.partitions, topic.replication, error.pointer, ErrorText.capacity)
            else { throw KafkaError(RD_KAFKA_RESP_ERR__INVALID_ARG, "topic \"\(topic.name)\": \(error.text)") }
            unsafe pointers.append(pointer)
            for (name, value) in topic.configuration {
                try KafkaError.check(unsafe rd_kafka_NewTopic_set_config(pointer, name, value))
            }
        }
    }

    deinit { unsafe rd_kafka_NewTopic_destroy_array(&pointers, pointers.count) }

    func withPointers(_ body: (UnsafeMutableBufferPointer<OpaquePointer?>) -> Void) {
        unsafe pointers.withUnsafeMutableBufferPointer { unsafe body($0) }
    }
}

/// Owns one `rd_kafka_AdminOptions_t`.
@safe struct AdminOptions: ~Copyable {
    let pointer: OpaquePointer

    init(_ client: OpaquePointer, _ operation: rd_kafka_admin_op_t, _ waitMaxMilliseconds: Int32) throws(KafkaError) {
        guard let pointer = unsafe rd_kafka_AdminOptions_new(client, operation) else {
            throw KafkaError(RD_KAFKA_RESP_ERR__INVALID_ARG)
        }
        unsafe self.pointer = pointer
        let error = ErrorText()
        unsafe rd_kafka_AdminOptions_set_request_timeout(
            pointer, waitMaxMilliseconds, error.pointer, ErrorText.capacity)
    }

    deinit { unsafe rd_kafka_AdminOptions_destroy(pointer) }
}

/// Owns the queue that receives the response to one request.
@safe struct ResponseQueue: ~Copyable {
    let pointer: OpaquePointer

    init(_ client: Client) { unsafe pointer = rd_kafka_queue_new(client.pointer) }
    deinit { unsafe rd_kafka_queue_destroy(pointer) }

    /// - Throws: The broker's error for the whole request, or a timeout.
    func response(_ waitMaxMilliseconds: Int32) throws(KafkaError) -> AdminResponse {
        // librdkafka reports the request's timeout itself; one more second allows for that.
        guard let event = unsafe rd_kafka_queue_poll(pointer, waitMaxMilliseconds + 1000) else {
            throw KafkaError(RD_KAFKA_RESP_ERR__TIMED_OUT)
        }
        let response = unsafe AdminResponse(pointer: event)
        try response.check()
        return response
    }
}

/// Owns the `rd_kafka_event_t` of a response.
@safe struct AdminResponse: ~Copyable {
    let pointer: OpaquePointer
    deinit { unsafe rd_kafka_event_destroy(pointer) }

    /// - Throws: The broker's error.
    borrowing func check() throws(KafkaError) {
        let text = unsafe rd_kafka_event_error_string(pointer).map { unsafe String(cString: $0) }
        try KafkaError.check(unsafe rd_kafka_event_error(pointer), text)
    }
}
