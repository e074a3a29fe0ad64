internal import CKafka
package import Essentials

/// A member of a consumer group. Owned by one thread: it cannot be copied or shared.
///
/// Delivery is at least once: an offset is committed only when all messages below it are finished. The assignment is
/// cooperative-sticky; `nextBatch` applies its changes and `takeAssignmentChanges` returns them.
///
/// **Restart of a broker without its data** (observed with librdkafka 2.0.2 and its mock cluster, tested in
/// FaultTests). The consumer reconnects. Then there are three cases:
/// - The next fetch fails with OFFSET_OUT_OF_RANGE, and librdkafka resumes at the earliest message: its `skippedBefore`
///   is true, and previous deliveries no longer count.
/// - The heartbeat fails with UNKNOWN_MEMBER_ID: the partitions are `lost`, the consumer rejoins and, without a
///   committed offset, starts at the earliest message without a mark.
/// - The new content already extends beyond the consumer's position before it fetches: the client cannot detect the
///   loss. Only a mark in the messages (the epoch) can, and the owner calls `seekToBeginning` and `recommit`.
package struct Consumer: ~Copyable {
    let client: Client
    let context: ConsumerContext
    /// Interrupts the wait in `nextBatch`; signalled by librdkafka and by other threads with work for the owner.
    package let wakeup: Wakeup
    let brokers: String
    let properties: [String: String]

    /// Creates a consumer, which joins `group` as soon as it is polled.
    ///
    /// - Parameters:
    ///   - brokers: `host:port`, separated by commas.
    ///   - properties: librdkafka properties that override this project's defaults (`ClientProperties.consumer`);
    ///     `group.instance.id` for static membership.
    /// - Throws: If librdkafka does not support a property or rejects its value; the message names it. Unavailable
    ///   brokers are not an error here.
    package init(
        brokers: String, group: String, topics: [String], properties: [String: String] = [:]
    ) throws(KafkaError) {
        self.brokers = brokers
        self.properties = properties
        let wakeup = try Wakeup.make()
        let context = ConsumerContext()
        let client = try Client(
            RD_KAFKA_CONSUMER,
            ClientProperties(
                brokers: brokers, defaults: ClientProperties.consumer, overrides: properties,
                reserved: ["group.id": group, "enable.auto.offset.store": "false"]),
            context: context, wakeup: wakeup)
        context.hasStatistics = properties["statistics.interval.ms"] != "0"
        let list = PartitionList(topics.map { TopicPartition(topic: $0, partition: -1) })
        try KafkaError.check(unsafe rd_kafka_subscribe(client.pointer, list.pointer))
        self.client = client
        self.context = context
        self.wakeup = wakeup
    }

    /// Maximum wait for the coordinator on close: longer than the default of `session.timeout.ms` (10 s), after which
    /// the group continues without this member.
    package static var closeMax: Duration { .seconds(15) }

    /// Commits finished offsets and leaves the group, so that other members take over immediately. Blocks until the
    /// broker has responded, at most `closeMax`.
    deinit {
        // Without an assignment it may be joining: see `isAbandoned`. It leaves the group nevertheless.
        if context.trackers.isEmpty { client.isAbandoned = true }
        leave()
    }

    /// Performs the steps of `rd_kafka_consumer_close`, which waits for the coordinator without a timeout.
    private func leave() {
        let queue = ResponseQueue(client)
        if let error = unsafe rd_kafka_consumer_close_queue(client.pointer, queue.pointer) {
            unsafe rd_kafka_error_destroy(error)
            return
        }
        let deadline = ContinuousClock.now + Self.closeMax
        while unsafe rd_kafka_consumer_closed(client.pointer) == 0 {
            guard ContinuousClock.now < deadline else {
                client.isAbandoned = true
                return
            }
            // Serves the rebalance and drops prefetched messages.
            let message = unsafe rd_kafka_consume_queue(queue.pointer, 50)
            if let message = unsafe message { unsafe rd_kafka_message_destroy(message) }
        }
    }

    /// Waits at most `waitMax` for the first message, then takes all that have arrived.
    ///
    /// Also serves rebalances, errors and statistics. Call it at least once per `max.poll.interval.ms`, also while all
    /// partitions are paused. Returns early, possibly without messages, when `wakeup` is signalled.
    ///
    /// - Returns: At most `countMax` messages, each partition's in offset order. Empty if none arrived.
    /// - Throws: Only a fatal error, after which a new consumer is required (such as a fenced static member).
    ///   Unavailable brokers are not an error: see `connectionProblem`.
    package mutating func nextBatch(countMax: Int, waitMax: Duration) throws(KafkaError) -> [Message] {
        let wasSignalled = wakeup.drain()
        var messages = take(countMax)
        if messages.isEmpty, !wasSignalled, wakeup.wait(atMost: waitMax) { messages = take(countMax) }
        if context.sawFatal, let error = client.fatalError { throw error }
        if messages.isEmpty { context.stalls.becameIdle() } else { pauseStarted() }
        sendLowerCommits()
        return messages
    }

    /// The currently assigned partitions.
    package var assignment: Set<TopicPartition> { Set(context.trackers.keys) }

    /// Returns the changes of the assignment since the last call, in order.
    package mutating func takeAssignmentChanges() -> [AssignmentChange] {
        defer { context.changes = [] }
        return context.changes
    }

    /// The broker's rejection or the reason why no broker is connected; `nil` while one is connected, and in the first
    /// second, before the first statistics, which arrive every second while `nextBatch` is called.
    package var connectionProblem: String? { context.connectionProblem }

    /// Returns the distinct broker rejections since the last call, which need manual action.
    package mutating func takeRejections() -> [KafkaError] { context.rejections.take() }

    /// Returns librdkafka's log since the last call, at most the latest 1,000 lines.
    package mutating func takeLogs() -> [LogLine] { context.logs.take() }
}

extension Consumer {
    /// Takes arrived messages and serves the callbacks that are due.
    private func take(_ countMax: Int) -> [Message] {
        unsafe withUnsafeTemporaryAllocation(
            of: UnsafeMutablePointer<rd_kafka_message_t>?.self, capacity: max(countMax, 1)
        ) { buffer in
            let count = unsafe rd_kafka_consume_batch_queue(client.queue, 0, buffer.baseAddress, buffer.count)
            guard count > 0 else { return [] }
            var messages: [Message] = []
            messages.reserveCapacity(count)
            var run = PartitionRun()
            for index in 0..<count {
                guard let pointer = unsafe buffer[index] else { continue }
                if let message = unsafe receive(pointer, &run) { messages.append(message) }
            }
            if !messages.isEmpty { context.rejections.served() }
            return messages
        }
    }

    /// - Returns: `nil` for an error, and for a message of a revoked partition.
    private func receive(_ pointer: UnsafeMutablePointer<rd_kafka_message_t>, _ run: inout PartitionRun) -> Message? {
        guard unsafe pointer.pointee.err == RD_KAFKA_RESP_ERR_NO_ERROR else {
            unsafe note(pointer)
            unsafe rd_kafka_message_destroy(pointer)
            return nil
        }
        unsafe run.move(to: pointer, in: context)
        guard var tracker = run.tracker else {
            unsafe rd_kafka_message_destroy(pointer)
            return nil
        }
        // A decreasing offset: the broker lost its content, and librdkafka restarted at the beginning.
        let offset = unsafe pointer.pointee.offset
        let lostFrom = tracker.next.flatMap { offset < $0 ? $0 : nil }
        if lostFrom != nil {
            tracker = context.restart(tracker)
            run.tracker = tracker
        }
        return unsafe Message(consuming: pointer, client: client, tracker: tracker, expectedOffset: lostFrom)
    }

    private func note(_ pointer: UnsafeMutablePointer<rd_kafka_message_t>) {
        let text = unsafe rd_kafka_message_errstr(pointer).map { unsafe String(cString: $0) }
        unsafe context.note(KafkaError(pointer.pointee.err, text))
    }

    func store(_ trackers: [PartitionTracker]) {
        let list = PartitionList(capacity: trackers.count)
        for tracker in trackers where tracker.isOpen {
            guard let offset = tracker.finishedBelow, offset != tracker.stored else { continue }
            list.add(tracker.partition, offset: offset)
            tracker.stored = offset
        }
        guard unsafe list.pointer.pointee.cnt > 0 else { return }
        // Fails only for a partition that is being revoked: its next owner reprocesses these messages.
        unsafe rd_kafka_offsets_store(client.pointer, list.pointer)
    }
}

/// The partition of the current message. Messages arrive in runs per partition; the tracker is looked up once per run.
@safe private struct PartitionRun {
    private var topic: OpaquePointer?
    private var partition: Int32 = -1
    var tracker: PartitionTracker?

    mutating func move(to message: UnsafeMutablePointer<rd_kafka_message_t>, in context: ConsumerContext) {
        if unsafe message.pointee.rkt == topic, unsafe message.pointee.partition == partition { return }
        unsafe topic = message.pointee.rkt
        partition = unsafe message.pointee.partition
        let name = unsafe String(cString: rd_kafka_topic_name(topic))
        tracker = context.trackers[TopicPartition(topic: name, partition: partition)]
    }
}
