internal import CKafka

/// One member of a consumer group. A thread owns it: it cannot be copied and is not shared.
///
/// Delivery is at least once: an offset is committed only when every message below it was finished. The assignment is
/// cooperative-sticky; what changes in it is done during `nextBatch` and told by `takeAssignmentChanges`.
///
/// **A broker that is killed and started again empty** (seen with librdkafka 2.0.2 and its mock cluster, tested in
/// FaultTests). The consumer reconnects by itself. Then either its next fetch is answered OFFSET_OUT_OF_RANGE and
/// librdkafka starts at the earliest message: its `skippedBefore` is true, and what was delivered before no longer
/// counts; or its heartbeat is answered UNKNOWN_MEMBER_ID: the partitions are `lost`, it joins anew and, since nothing
/// is committed, starts at the earliest message without a mark. Neither is seen when the new content already reaches
/// beyond the consumer's position before it fetches: only a mark in the messages (the epoch) tells then, and the owner
/// calls `seekToBeginning` and `commitAnew`.
package struct Consumer: ~Copyable {
    let client: Client
    let context: ConsumerContext
    /// Ends a wait in `nextBatch`: signalled by librdkafka, and by whoever else has something for this loop.
    package let wakeup: Wakeup
    let brokers: String
    let properties: [String: String]

    /// Joins `group` as soon as it is polled.
    ///
    /// - Parameters:
    ///   - brokers: `host:port`, separated by commas.
    ///   - properties: librdkafka's, over this project's defaults (`ClientProperties.consumer`); `group.instance.id`
    ///     for static membership.
    ///   - wakeup: The one of a loop that waits for other things too.
    /// - Throws: For a property that librdkafka does not know or whose value it refuses; the message names it. Brokers
    ///   that do not answer are no error here.
    package init(
        brokers: String, group: String, topics: [String], properties: [String: String] = [:], wakeup: Wakeup? = nil
    ) throws(KafkaError) {
        self.brokers = brokers
        self.properties = properties
        let wakeup = if let wakeup { wakeup } else { try Wakeup() }
        let context = ConsumerContext()
        let client = try Client(
            RD_KAFKA_CONSUMER,
            ClientProperties(
                brokers: brokers, defaults: ClientProperties.consumer, overrides: properties,
                reserved: ["group.id": group, "enable.auto.offset.store": "false"]),
            context: context, wakeup: wakeup)
        context.tellsState = properties["statistics.interval.ms"] != "0"
        let list = PartitionList(topics.map { TopicPartition(topic: $0, partition: -1) })
        try KafkaError.check(unsafe rd_kafka_subscribe(client.pointer, list.pointer))
        self.client = client
        self.context = context
        self.wakeup = wakeup
    }

    /// Maximum wait for the coordinator when a consumer closes: longer than `session.timeout.ms` (10 s unless set),
    /// after which the group continues without this member.
    package static var closeMax: Duration { .seconds(15) }

    deinit {
        // Without an assignment it may be joining: see `isAbandoned`. It leaves the group all the same.
        if context.trackers.isEmpty { client.isAbandoned = true }
        leave()
    }

    /// Commits what was finished and leaves the group, so that others take over at once. Blocks until the broker has
    /// answered, at most `closeMax`. A consumer that goes out of scope does the same.
    package consuming func close() {}

    /// `rd_kafka_consumer_close` waits for the coordinator without a limit, so its parts are done here.
    private func leave() {
        let queue = AnswerQueue(client)
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
            // Serves the rebalance, and drops what was fetched.
            let message = unsafe rd_kafka_consume_queue(queue.pointer, 50)
            if let message = unsafe message { unsafe rd_kafka_message_destroy(message) }
        }
    }

    /// Waits at most `waitMax` for the first message, then takes what has already arrived.
    ///
    /// Serves everything else of the consumer too (rebalances, errors, statistics), so it must be called at least once
    /// in `max.poll.interval.ms`, also while all partitions are paused. Returns early, maybe without messages, when
    /// `wakeup` is signalled.
    ///
    /// - Returns: At most `countMax` messages, each partition's in offset order. Empty when none arrived.
    /// - Throws: Only a fatal error, after which a new consumer is needed (a static member that was fenced). Brokers
    ///   that are away are no error: see `lastError` and `isConnected`.
    package mutating func nextBatch(countMax: Int, waitMax: Duration) throws(KafkaError) -> [Message] {
        let wasSignalled = wakeup.drain()
        var messages = take(countMax)
        if messages.isEmpty, !wasSignalled, wakeup.wait(atMost: waitMax) {
            wakeup.drain()
            messages = take(countMax)
        }
        if context.sawFatal, let error = client.fatalError { throw error }
        if messages.isEmpty { context.stalls.ranDry() } else { pauseStarted() }
        commitLower()
        return messages
    }

    /// Marks messages as done, in any order, and stores for the next commit the lowest unfinished offset of each
    /// partition concerned. Messages of an earlier assignment, or from before a seek, are ignored.
    package mutating func finish(_ messages: some Sequence<Message>) {
        var touched: [PartitionTracker] = []
        for message in messages {
            message.tracker.finish(slot: message.slot)
            if touched.last !== message.tracker, !touched.contains(where: { $0 === message.tracker }) {
                touched.append(message.tracker)
            }
        }
        store(touched)
    }

    /// As `finish(_:)` of a sequence.
    package mutating func finish(_ message: Message) {
        message.tracker.finish(slot: message.slot)
        store([message.tracker])
    }

    /// The partitions this consumer has now.
    package var assignment: Set<TopicPartition> { Set(context.trackers.keys) }

    /// What came and went since the last call, in order.
    package mutating func takeAssignmentChanges() -> [AssignmentChange] {
        defer { context.changes = [] }
        return context.changes
    }

    /// The last error that was not fatal; `nil` again once a broker is connected.
    package var lastError: KafkaError? { context.lastError }

    /// A broker was connected when librdkafka last told: once a second, as long as `nextBatch` is called.
    package var isConnected: Bool { context.isConnected }

    /// What a broker refuses, or why none can be reached; `nil` while one is connected, and in the first second, when
    /// nothing is known yet.
    package var connectionProblem: String? { context.connectionProblem }

    /// What brokers have refused since the last call, each once: for a person to change.
    package mutating func takeRefusals() -> [KafkaError] { context.refusals.take() }

    /// librdkafka's log since the last call; at most the latest 1,000 lines.
    package mutating func takeLogs() -> [LogLine] { context.logs.take() }
}

extension Consumer {
    /// Takes what has arrived, and serves the callbacks that are due.
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
            if !messages.isEmpty { context.refusals.served() }
            return messages
        }
    }

    /// - Returns: `nil` for an error, and for a message of a partition that was taken away meanwhile.
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
        // Offsets that go backwards: the broker lost its content, and librdkafka began again at the beginning.
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
        // Refused only for a partition that is being taken away: its next owner repeats these messages.
        unsafe rd_kafka_offsets_store(client.pointer, list.pointer)
    }
}

/// The partition of the message at hand: messages come in runs, and the tracker is looked up once per run.
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
