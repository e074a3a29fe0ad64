internal import Essentials
internal import Kafka
internal import Logging
internal import Model
internal import Synchronization

/// The part of a worker's state that other threads change.
final class TopicMailbox: Sendable {
    /// The end of a handler's call.
    struct CallResult {
        enum Outcome {
            case handled, cancelled
            /// With the reason.
            case failed(String)
        }
        let call: Int
        let outcome: Outcome
    }

    private struct State {
        var results: [CallResult] = []
        var isStopping = false
        var wakeup: Wakeup?
    }
    private let state = Mutex(State())

    func attach(_ wakeup: Wakeup) { state.withLock { $0.wakeup = wakeup } }

    var isStopping: Bool { state.withLock(\.isStopping) }

    func stop() { change { $0.isStopping = true } }

    func post(_ result: CallResult) { change { $0.results.append(result) } }

    func takeResults() -> [CallResult] {
        state.withLock { state in
            defer { state.results = [] }
            return state.results
        }
    }

    private func change(_ body: (inout State) -> Void) {
        state.withLock { state in
            body(&state)
            state.wakeup?.signal()
        }
    }
}

/// Polls Kafka and starts calls of the handler. It runs on a thread of its own, because a consumer blocks; therefore
/// the consumer stays in its group, however long a call takes.
struct TopicLoop: ~Copyable {
    private struct PendingMessage {
        let message: TopicMessage
        let receipt: Receipt
        var backoff = Backoff(waitMax: .seconds(60))
        /// The time of the next retry, after the handler threw.
        var retryAt: ContinuousClock.Instant?
    }

    private struct Call {
        let pending: PendingMessage
        let task: Task<Void, Never>
        /// Whether the message's partition was revoked.
        var isRevoked = false
    }

    private let worker: TopicWorker
    private let mailbox: TopicMailbox
    private var consumer: Consumer
    /// Received messages without a call, in the order of their arrival.
    private var waiting: [PendingMessage] = []
    private var calls: [Int: Call] = [:]
    private var callCount = 0
    private var isPaused = false
    /// Whether a partition was delivered from an earlier offset. A new consumer resumes at the committed offsets.
    private var isRewound = false
    /// Assigned partitions whose start is not resolved yet.
    private var pendingStarts: Set<TopicPartition> = []
    private var nextStartCheck = ContinuousClock.now
    private var problem: String?
    private var nextDeliveryCheck = ContinuousClock.now + deliveryInterval

    /// At this number of waiting messages, delivery is paused until half of them have a call.
    private static var waitingMax: Int { 1_000 }
    private static var batchMax: Int { 100 }
    private static var deliveryInterval: Duration { .seconds(30) }
    private static var waitMax: Duration { .seconds(1) }
    /// Maximum wait for handlers that ignore their cancellation.
    private static var stopMax: Duration { .seconds(10) }

    static func run(_ worker: TopicWorker, _ mailbox: TopicMailbox) throws(IntegrationError) {
        do throws(KafkaError) {
            while !mailbox.isStopping {
                var loop = try TopicLoop(worker, mailbox)
                let result = Result { () throws(KafkaError) in
                    while !mailbox.isStopping, !loop.isRewound { try loop.step() }
                }
                loop.end()
                try result.get()
            }
        } catch {
            throw .kafka(error.description)
        }
    }

    private init(_ worker: TopicWorker, _ mailbox: TopicMailbox) throws(KafkaError) {
        let consumer = try Consumer(
            brokers: worker.settings.brokers, group: worker.group, topics: worker.topics,
            properties: worker.settings.properties.filter { $0.key != "enable.auto.commit" })
        mailbox.attach(consumer.wakeup)
        (self.worker, self.mailbox) = (worker, mailbox)
        self.consumer = consumer
    }

    /// Cancels all calls, waits for their end, at most `stopMax`, and stores the offsets of handled messages, which are
    /// committed when the consumer is closed.
    private mutating func end() {
        for call in calls.values { call.task.cancel() }
        let deadline = ContinuousClock.now + Self.stopMax
        while true {
            finishCalls()
            let rest = ContinuousClock.now.duration(to: deadline)
            if calls.isEmpty || rest <= .zero { return }
            consumer.wakeup.wait(atMost: rest)
        }
    }

    private mutating func step() throws(KafkaError) {
        finishCalls()
        startCalls()
        pauseOrResume()
        let messages = try consumer.nextBatch(countMax: Self.batchMax, waitMax: retryWait)
        // Before the messages: they may be of a partition that was revoked and assigned again.
        for change in consumer.takeAssignmentChanges() { apply(change) }
        if !pendingStarts.isEmpty, ContinuousClock.now >= nextStartCheck { resolveStarts() }
        for message in messages where !isRewound { receive(message) }
        logProblems()
        if ContinuousClock.now >= nextDeliveryCheck { try checkDelivery() }
    }

    /// The time until the next retry, if it has a slot; the end of a call interrupts the wait.
    private var retryWait: Duration {
        guard calls.count < worker.concurrencyMax, let next = waiting.compactMap(\.retryAt).min() else {
            return Self.waitMax
        }
        return max(.milliseconds(1), min(ContinuousClock.now.duration(to: next), Self.waitMax))
    }

    private mutating func receive(_ message: Message) {
        if message.skippedBefore { logGap(message.topicPartition, message.expectedOffset, before: message.offset) }
        // The receipts of earlier messages are void: later offsets must not be committed before these are handled.
        isRewound = message.offset < message.expectedOffset
        if isRewound { return }
        if let read = TopicMessage(message) {
            waiting.append(PendingMessage(message: read, receipt: message.receipt))
        } else {
            worker.logger.error(
                "message without Fieldpost's headers skipped",
                metadata: ["partition": "\(message.topicPartition)", "offset": "\(message.offset)"])
            consumer.finish([message])
        }
    }

    /// Determines the offsets at which new partitions start: a partition that delivers nothing is detected by them.
    private mutating func resolveStarts() {
        nextStartCheck = .now + Self.deliveryInterval
        guard let beginnings = try? consumer.beginnings(of: pendingStarts).found else { return }
        for beginning in beginnings {
            consumer.begin(beginning.partition, at: beginning.start)
            if !beginning.isFresh, !beginning.expired.isEmpty {
                logGap(beginning.partition, beginning.expired.lowerBound, before: beginning.first)
            }
        }
        pendingStarts.subtract(beginnings.map(\.partition))
    }

    private func logGap(_ partition: TopicPartition, _ expected: Int64, before offset: Int64) {
        worker.logger.error(
            expected < offset
                ? "messages missing, republish the topic" : "partition restarts, messages may have been lost",
            metadata: ["partition": "\(partition)", "expected": "\(expected)", "offset": "\(offset)"])
    }

    /// Another worker may handle a revoked partition's messages at once. Their offsets can no longer be committed here.
    private mutating func apply(_ change: AssignmentChange) {
        if case .assigned = change {
            pendingStarts.insert(change.partition)
            nextStartCheck = .now
            return
        }
        pendingStarts.remove(change.partition)
        waiting.removeAll { $0.receipt.partition == change.partition }
        for (number, call) in calls where call.pending.receipt.partition == change.partition {
            calls[number]?.isRevoked = true
            call.task.cancel()
        }
    }

    private mutating func finishCalls() {
        for result in mailbox.takeResults() {
            guard let call = calls.removeValue(forKey: result.call), !call.isRevoked else { continue }
            switch result.outcome {
            case .handled: consumer.finish([call.pending.receipt])
            case .cancelled: break
            case .failed(let reason): retry(call.pending, reason)
            }
        }
    }

    /// Stores a message whose handler threw before all others, so that it precedes those of its object.
    private mutating func retry(_ failed: PendingMessage, _ reason: String) {
        var failed = failed
        let wait = failed.backoff.failed(random: .random(in: 0..<1))
        failed.retryAt = .now + wait
        waiting.insert(failed, at: 0)
        let message = failed.message
        worker.logger.error(
            "message failed, retrying",
            metadata: [
                "object": "\(message.subject)", "position": "\(message.position)", "reason": "\(reason)",
                "wait": "\(wait)",
            ])
    }

    /// Starts calls for the oldest messages of objects that have no call. An object whose message waits for a retry has
    /// none, and needs no slot.
    private mutating func startCalls() {
        let now = ContinuousClock.now
        var busy = Set(calls.values.map(\.pending.message.subject))
        var index = 0
        while index < waiting.count, calls.count < worker.concurrencyMax {
            let next = waiting[index]
            if busy.insert(next.message.subject).inserted, next.retryAt ?? now <= now {
                start(waiting.remove(at: index))
            } else {
                index += 1
            }
        }
    }

    private mutating func start(_ next: PendingMessage) {
        callCount += 1
        let (number, worker, mailbox) = (callCount, worker, mailbox)
        let task = Task { mailbox.post(.init(call: number, outcome: await worker.handle(next.message))) }
        calls[number] = Call(pending: next, task: task)
    }

    private mutating func pauseOrResume() {
        if !isPaused, waiting.count >= Self.waitingMax {
            isPaused = true
            // `nextBatch` retries a partition that cannot be paused.
            try? consumer.pauseAll()
            worker.logger.debug("delivery paused", metadata: ["waiting": "\(waiting.count)"])
        } else if isPaused, waiting.count <= Self.waitingMax / 2 {
            isPaused = (try? consumer.resumeAll()) == nil
        }
    }

    private mutating func logProblems() {
        for rejection in consumer.takeRejections() {
            worker.logger.error("broker rejected the request", metadata: ["reason": "\(rejection)"])
        }
        guard consumer.connectionProblem != problem else { return }
        problem = consumer.connectionProblem
        if let problem {
            worker.logger.warning("brokers unavailable", metadata: ["reason": "\(problem)"])
        } else {
            worker.logger.notice("brokers recovered")
        }
    }

    /// Ends the worker if librdkafka has silently stopped to deliver a partition.
    private mutating func checkDelivery() throws(KafkaError) {
        nextDeliveryCheck = .now + Self.deliveryInterval
        do {
            try consumer.checkDelivery()
        } catch {
            if error.isFatal { throw error }
        }
    }
}

extension TopicWorker {
    /// Calls the handler.
    fileprivate func handle(_ message: TopicMessage) async -> TopicMailbox.CallResult.Outcome {
        do {
            try await handler(message)
            return .handled
        } catch {
            return Task.isCancelled ? .cancelled : .failed("\(error)")
        }
    }
}
