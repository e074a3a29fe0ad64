internal import CKafka

/// Makes librdkafka report deliveries as events, on the thread that polls.
final class ProducerContext: ClientContext {
    override func install(in configuration: OpaquePointer) {
        unsafe super.install(in: configuration)
        unsafe rd_kafka_conf_set_events(
            configuration, RD_KAFKA_EVENT_DR | RD_KAFKA_EVENT_ERROR | RD_KAFKA_EVENT_STATS)
    }
}

/// Owns one `rd_kafka_topic_t`.
@safe final class TopicHandle {
    let name: String
    let pointer: OpaquePointer
    /// A topic must go before its client.
    private let client: Client

    init(_ name: String, client: Client) throws(KafkaError) {
        guard let pointer = unsafe rd_kafka_topic_new(client.pointer, name, nil) else {
            throw KafkaError(rd_kafka_last_error(), "topic \"\(name)\": \(KafkaError(rd_kafka_last_error()).message)")
        }
        self.name = name
        unsafe self.pointer = pointer
        self.client = client
    }

    deinit { unsafe rd_kafka_topic_destroy(pointer) }
}

extension Producer {
    mutating func topicPointer(_ name: String) throws(KafkaError) -> OpaquePointer {
        if let topic = topics.first(where: { $0.name == name }) { return unsafe topic.pointer }
        let topic = try TopicHandle(name, client: client)
        topics.append(topic)
        return unsafe topic.pointer
    }

    func produce(
        _ topic: OpaquePointer, _ key: RawSpan, _ value: RawSpan?, _ headers: OpaquePointer, _ tag: UInt64
    ) -> rd_kafka_resp_err_t {
        let tag = unsafe UnsafeMutableRawPointer(bitPattern: UInt(tag))
        return unsafe key.withUnsafeBytes { key in
            guard let value else {
                return unsafe fieldpost_kafka_produce(
                    client.pointer, topic, key.baseAddress ?? empty, key.count, nil, 0, headers, tag)
            }
            return unsafe value.withUnsafeBytes { value in
                unsafe fieldpost_kafka_produce(
                    client.pointer, topic, key.baseAddress ?? empty, key.count, value.baseAddress ?? empty,
                    value.count, headers, tag)
            }
        }
    }

    /// Waits at most `waitMax` for the first event, and takes all that are there into `pending`.
    mutating func serve(waitMax: Duration) {
        var wait = waitMax.millisecondsRoundedUp
        while let event = unsafe rd_kafka_queue_poll(client.queue, wait) {
            wait = 0
            unsafe handle(event)
            unsafe rd_kafka_event_destroy(event)
        }
    }

    private mutating func handle(_ event: OpaquePointer) {
        switch unsafe rd_kafka_event_type(event) {
        case RD_KAFKA_EVENT_DR:
            var countOfUnknown: Int64 = 0
            while let message = unsafe rd_kafka_event_message_next(event) {
                unsafe pending.append(delivery(of: message, &countOfUnknown))
            }
        case RD_KAFKA_EVENT_STATS:
            if let text = unsafe rd_kafka_event_stats(event) {
                unsafe context.noteStatistics(text)
            }
        case RD_KAFKA_EVENT_ERROR:
            let text = unsafe rd_kafka_event_error_string(event).map { unsafe String(cString: $0) }
            unsafe context.note(KafkaError(rd_kafka_event_error(event), text))
        default: break  // no other event was asked for
        }
    }

    /// - Parameter countOfUnknown: How many messages of this batch came before that are written nobody knows where.
    ///   A broker answers a repeated batch that it does not remember with DUPLICATE_SEQUENCE_NUMBER, and librdkafka
    ///   then counts the offsets of the batch from -1.
    private mutating func delivery(
        of message: UnsafePointer<rd_kafka_message_t>, _ countOfUnknown: inout Int64
    ) -> Delivery {
        let code = unsafe message.pointee.err
        let topic = topics.first { unsafe $0.pointer == message.pointee.rkt }
        let place = unsafe TopicPartition(
            topic: topic?.name ?? String(cString: rd_kafka_topic_name(message.pointee.rkt)),
            partition: message.pointee.partition)
        var offset: Int64?
        var wentBackwards = false
        if code == RD_KAFKA_RESP_ERR_NO_ERROR {
            let written = unsafe message.pointee.offset
            if written < 0 || (countOfUnknown > 0 && written == countOfUnknown - 1) {
                countOfUnknown += 1
            } else {
                wentBackwards = written <= ends.updateValue(written, forKey: place) ?? -1
                offset = written
            }
        }
        return unsafe Delivery(
            tag: UInt64(UInt(bitPattern: message.pointee._private)), topic: place.topic, partition: place.partition,
            offset: offset, error: code == RD_KAFKA_RESP_ERR_NO_ERROR ? nil : KafkaError(code),
            wentBackwards: wentBackwards)
    }
}
