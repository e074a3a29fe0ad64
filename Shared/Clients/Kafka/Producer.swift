internal import CKafka
package import Essentials

/// The result of sending a message.
package struct Delivery: Equatable, Sendable {
    /// The caller's tag, from `send`.
    package let tag: UInt64
    /// The message's partition; -1 if it was never assigned to one.
    package let topicPartition: TopicPartition
    /// The message's offset; `nil` if it was not written, or if that is unknown.
    package let offset: Int64?
    /// The error; `nil` if all in-sync replicas have the message.
    package let error: KafkaError?
}

/// An idempotent producer: each message is written once and in order per partition, during the producer's lifetime.
///
/// Owned by one thread: it cannot be copied or shared.
///
/// **A broker that lost its content** (observed with librdkafka 2.0.2, tested in FaultTests). There are three cases:
/// - The mock cluster, restarted empty, accepts the old producer id: queued and in-flight messages are resent and
///   written without an error. The offset of the first delivery of each partition is lower than earlier ones.
/// - A broker that responds UNKNOWN_PRODUCER_ID makes librdkafka start a new producer epoch and resend, also without an
///   error.
/// - A broker that responds OUT_OF_ORDER_SEQUENCE_NUMBER (45) terminates the producer: the batch is reported with that
///   error, `fatalError` is set (code 45, `isFatal`), the rest of the queue is reported as `_PURGE_QUEUE` (in-flight
///   messages may still be written), and every `send` throws the error. Then create a new producer and resend, starting
///   with the first message that failed.
package struct Producer: ~Copyable {
    let client: Client
    let context: ClientContext
    /// Interrupts the wait in `deliveries`; signalled by librdkafka and by other threads with work for the owner.
    package let wakeup: Wakeup
    var topics: [TopicHandle] = []
    /// Reports received while `send` waited for space in the queue.
    var pending: [Delivery] = []

    /// - Parameters:
    ///   - brokers: `host:port`, separated by commas.
    ///   - properties: librdkafka properties that override this project's defaults (`ClientProperties.producer`). The
    ///     queue's limits are `queue.buffering.max.messages` and `queue.buffering.max.kbytes`.
    /// - Throws: If librdkafka does not support a property or rejects its value; the message names it.
    package init(brokers: String, properties: [String: String] = [:]) throws(KafkaError) {
        let wakeup = try Wakeup.make()
        let context = ProducerContext()
        client = try Client(
            RD_KAFKA_PRODUCER,
            ClientProperties(brokers: brokers, defaults: ClientProperties.producer, overrides: properties),
            context: context, wakeup: wakeup)
        self.context = context
        self.wakeup = wakeup
    }

    /// Adds a message to the queue; returns before it is written.
    ///
    /// Backpressure: when the queue is full, it waits at most `waitMax` and serves reports meanwhile, which
    /// `deliveries` returns.
    ///
    /// - Parameters:
    ///   - value: `nil` for a tombstone.
    ///   - tag: Returned in the message's `Delivery`.
    /// - Throws: A queue-full error if there was no space within `waitMax`; a fatal error, after which a new producer
    ///   is required; or an error of the message (too large, unknown topic). The message is then not in the queue and
    ///   will not be reported.
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

    /// Waits at most `waitMax` for the first report, then takes all that have arrived. Returns early, possibly without
    /// reports, when `wakeup` is signalled.
    package mutating func deliveries(waitMax: Duration) -> [Delivery] {
        let wasSignalled = wakeup.drain()
        serve(waitMax: .zero)
        if pending.isEmpty, !wasSignalled, wakeup.wait(atMost: waitMax) { serve(waitMax: .zero) }
        defer { pending = [] }
        return pending
    }

    /// Waits at most `waitMax` until all sent messages are written or have failed; `deliveries` returns the reports.
    ///
    /// - Returns: Whether the queue is empty.
    @discardableResult
    package mutating func flush(waitMax: Duration) -> Bool {
        let clock = ContinuousClock()
        let end = clock.now + waitMax
        while queuedCount > 0, clock.now < end { serve(waitMax: min(.milliseconds(100), end - clock.now)) }
        return queuedCount == 0
    }

    /// The number of messages and reports in librdkafka's queues.
    package var queuedCount: Int { Int(unsafe rd_kafka_outq_len(client.pointer)) }

    /// The error after which this producer sends no more messages.
    package var fatalError: KafkaError? { client.fatalError }

    /// The broker's rejection or the reason why no broker is connected; see `Consumer.connectionProblem`.
    package var connectionProblem: String? { context.connectionProblem }
}
