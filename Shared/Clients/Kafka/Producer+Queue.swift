internal import CKafka

/// Makes librdkafka report deliveries as events on the polling thread.
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
    /// Retained, because a topic must be destroyed before its client.
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

    /// Waits at most `waitMax` for the first event, and appends all available deliveries to `pending`.
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
            var run = ReportRun()
            while let message = unsafe rd_kafka_event_message_next(event) {
                unsafe pending.append(delivery(of: message, &run))
            }
            if let last = pending.last, last.error == nil { context.rejections.served() }
        case RD_KAFKA_EVENT_STATS:
            if let text = unsafe rd_kafka_event_stats(event) {
                unsafe context.readStatistics(text)
            }
        case RD_KAFKA_EVENT_ERROR:
            let text = unsafe rd_kafka_event_error_string(event).map { unsafe String(cString: $0) }
            unsafe context.note(KafkaError(rd_kafka_event_error(event), text))
        default: break  // no other event is enabled
        }
    }

    private func delivery(of message: UnsafePointer<rd_kafka_message_t>, _ run: inout ReportRun) -> Delivery {
        if unsafe !run.continues(with: message) { unsafe run.begin(with: message, topics) }
        let code = unsafe message.pointee.err
        var offset: Int64?
        if code == RD_KAFKA_RESP_ERR_NO_ERROR {
            let written = unsafe message.pointee.offset
            if written < 0 || (run.unknownOffsetCount > 0 && written == run.unknownOffsetCount - 1) {
                run.unknownOffsetCount += 1
            } else {
                offset = written
            }
        }
        return unsafe Delivery(
            tag: UInt64(UInt(bitPattern: message.pointee._private)), topicPartition: run.topicPartition, offset: offset,
            error: code == RD_KAFKA_RESP_ERR_NO_ERROR ? nil : KafkaError(code))
    }
}

/// A run of reports for one partition, whose state is looked up once per run.
@safe private struct ReportRun {
    private var topic: OpaquePointer?
    private(set) var topicPartition = TopicPartition(topic: "", partition: -1)
    /// The number of preceding messages of this batch with an unknown offset. A broker that has no state of a resent
    /// batch responds DUPLICATE_SEQUENCE_NUMBER, and librdkafka then counts the batch's offsets from -1.
    var unknownOffsetCount: Int64 = 0

    func continues(with message: UnsafePointer<rd_kafka_message_t>) -> Bool {
        unsafe message.pointee.rkt == topic && message.pointee.partition == topicPartition.partition
    }

    mutating func begin(with message: UnsafePointer<rd_kafka_message_t>, _ topics: [TopicHandle]) {
        unsafe topic = message.pointee.rkt
        let name = topics.first { unsafe $0.pointer == topic }?.name
        topicPartition = unsafe TopicPartition(
            topic: name ?? String(cString: rd_kafka_topic_name(message.pointee.rkt)),
            partition: message.pointee.partition)
        unknownOffsetCount = 0
    }
}
