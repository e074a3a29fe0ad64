internal import CKafka

/// What became of a message that was sent.
package struct Delivery: Equatable, Sendable {
    /// The caller's, from `send`.
    package let tag: UInt64
    /// Where it was sent; the partition is -1 when it was never assigned to one.
    package let place: TopicPartition
    /// Where the message is; `nil` when it was not written, or nobody knows whether it was.
    package let offset: Int64?
    /// `nil`: all replicas in sync have it.
    package let error: KafkaError?
    /// This producer had written to a higher offset of the partition before: the broker lost its content since.
    package let wentBackwards: Bool
}

/// An idempotent producer: each message is written once and in order per partition, as long as the producer lives.
///
/// A thread owns it: it cannot be copied and is not shared.
///
/// **A broker that lost its content** (seen with librdkafka 2.0.2, tested in FaultTests). The mock cluster, killed and
/// started again empty, accepts the old producer id: what was queued or on its way is sent again and written, no error
/// at all; the first delivery of each partition says `wentBackwards`. A broker that answers UNKNOWN_PRODUCER_ID makes
/// librdkafka take a new epoch and send again, no error either. One that answers OUT_OF_ORDER_SEQUENCE_NUMBER (45) ends
/// the producer: the batch is reported with that error, `fatalError` is set (code 45, `isFatal`), the rest of the
/// queue is reported as `_PURGE_QUEUE` (what was about to go out may still be written) and every `send` throws the
/// error. Then make a new producer, and send again from the first message that failed.
package struct Producer: ~Copyable {
    let client: Client
    let context: ClientContext
    /// Ends a wait in `deliveries`: signalled by librdkafka, and by whoever else has something for this loop.
    package let wakeup: Wakeup
    var topics: [TopicHandle] = []
    /// By topic and partition, the highest offset written.
    var ends: [TopicPartition: Int64] = [:]
    /// Reports that came while `send` waited for room.
    var pending: [Delivery] = []

    /// - Parameters:
    ///   - brokers: `host:port`, separated by commas.
    ///   - properties: librdkafka's, over this project's defaults (`ClientProperties.producer`). The queue's bounds are
    ///     `queue.buffering.max.messages` and `queue.buffering.max.kbytes`.
    /// - Throws: For a property that librdkafka does not know or whose value it refuses; the message names it.
    package init(
        brokers: String, properties: [String: String] = [:], wakeup: Wakeup? = nil
    ) throws(KafkaError) {
        let wakeup = if let wakeup { wakeup } else { try Wakeup() }
        let context = ProducerContext()
        client = try Client(
            RD_KAFKA_PRODUCER,
            ClientProperties(brokers: brokers, defaults: ClientProperties.producer, overrides: properties),
            context: context, wakeup: wakeup)
        self.context = context
        self.wakeup = wakeup
    }

    /// Takes a message into the queue; returns before it is written.
    ///
    /// When the queue is full it waits, at most `waitMax`, and serves reports meanwhile (`deliveries` returns them).
    ///
    /// - Parameters:
    ///   - value: `nil` makes a tombstone.
    ///   - tag: Comes back in the message's `Delivery`.
    /// - Throws: `isQueueFull` when there was no room for `waitMax`; a fatal error, after which a new producer is
    ///   needed; an error that names what is wrong with the message (too large, unknown topic). The message is then
    ///   not in the queue and will not be reported.
    package mutating func send(
        _ topic: String, key: RawSpan, value: RawSpan?, headers: consuming Headers, tag: UInt64 = 0,
        waitMax: Duration = .seconds(60)
    ) throws(KafkaError) {
        let handle = unsafe try topicPointer(topic)
        let clock = ContinuousClock()
        var deadline: ContinuousClock.Instant?
        while true {
            let code = unsafe produce(handle, key, value, headers.pointer, tag)
            if code == RD_KAFKA_RESP_ERR_NO_ERROR { break }
            guard code == RD_KAFKA_RESP_ERR__QUEUE_FULL else { throw client.fatalError ?? KafkaError(code) }
            let end = deadline ?? clock.now + waitMax
            deadline = end
            guard clock.now < end else { throw KafkaError(code) }
            serve(waitMax: min(.milliseconds(100), end - clock.now))
        }
        headers.relinquish()
    }

    /// As above, with copies.
    package mutating func send(
        _ topic: String, key: [UInt8], value: [UInt8]?, headers: [(name: String, value: [UInt8])] = [],
        tag: UInt64 = 0, waitMax: Duration = .seconds(60)
    ) throws(KafkaError) {
        let headers = Headers(headers)
        if let value {
            try unsafe send(
                topic, key: key.span.bytes, value: value.span.bytes, headers: headers, tag: tag, waitMax: waitMax)
        } else {
            try unsafe send(topic, key: key.span.bytes, value: nil, headers: headers, tag: tag, waitMax: waitMax)
        }
    }

    /// Waits at most `waitMax` for the first report, then takes those that have arrived. Returns early, maybe without
    /// reports, when `wakeup` is signalled.
    package mutating func deliveries(waitMax: Duration) -> [Delivery] {
        let wasSignalled = wakeup.drain()
        serve(waitMax: .zero)
        if pending.isEmpty, !wasSignalled, wakeup.wait(atMost: waitMax) {
            wakeup.drain()
            serve(waitMax: .zero)
        }
        defer { pending = [] }
        return pending
    }

    /// Waits at most `waitMax` until every message sent is written or failed; `deliveries` returns the reports.
    ///
    /// - Returns: Whether the queue is empty.
    @discardableResult
    package mutating func flush(waitMax: Duration) -> Bool {
        let clock = ContinuousClock()
        let end = clock.now + waitMax
        while queuedCount > 0, clock.now < end { serve(waitMax: min(.milliseconds(100), end - clock.now)) }
        return queuedCount == 0
    }

    /// Gives up every message that is queued or on its way; each is reported with an error. Of those on their way
    /// nobody knows whether they are written.
    package mutating func purge() {
        // Without waiting for the threads of brokers, which has no limit.
        let all = RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT | RD_KAFKA_PURGE_F_NON_BLOCKING
        unsafe rd_kafka_purge(client.pointer, all)
    }

    /// Messages and reports that librdkafka holds.
    package var queuedCount: Int { Int(unsafe rd_kafka_outq_len(client.pointer)) }

    /// The error after which this producer sends nothing more.
    package var fatalError: KafkaError? { client.fatalError }

    /// The last error that was not fatal; `nil` again once a broker is connected.
    package var lastError: KafkaError? { context.lastError }

    /// A broker was connected when librdkafka last told: once a second, as long as `deliveries` is called.
    package var isConnected: Bool { context.isConnected }

    /// What a broker refuses, or why none can be reached; as of a consumer.
    package var connectionProblem: String? { context.connectionProblem }

    /// What brokers have refused since the last call, each once: for a person to change.
    package mutating func takeRefusals() -> [KafkaError] { context.refusals.take() }

    /// librdkafka's log since the last call; at most the latest 1,000 lines.
    package mutating func takeLogs() -> [LogLine] { context.logs.take() }
}
