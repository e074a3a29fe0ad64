internal import Essentials
internal import Kafka
internal import Logging
internal import Model
internal import Synchronization

/// The part of a worker's state that other threads change.
final class TopicMailbox: Sendable {
    /// The end of a handler's call.
    struct Ended {
        enum Outcome {
            case handled, cancelled
            /// With the reason.
            case failed(String)
        }
        let call: Int
        let outcome: Outcome
    }

    private struct State {
        var ended: [Ended] = []
        var isStopping = false
        var wakeup: Wakeup?
    }
    private let state = Mutex(State())

    func attach(_ wakeup: Wakeup) { state.withLock { $0.wakeup = wakeup } }

    var isStopping: Bool { state.withLock(\.isStopping) }

    func stop() { change { $0.isStopping = true } }

    func post(_ ended: Ended) { change { $0.ended.append(ended) } }

    func takeEnded() -> [Ended] {
        state.withLock { state in
            defer { state.ended = [] }
            return state.ended
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
    private struct Waiting {
        let message: TopicMessage
        let receipt: Receipt
        var backoff = Backoff(waitMax: .seconds(60))
        /// The time of the next retry, after the handler threw.
        var retryAt: ContinuousClock.Instant?
    }

    private struct Call {
        let waiting: Waiting
        let task: Task<Void, Never>
        /// Whether the message's partition was revoked.
        var isRevoked = false
    }

    private let worker: TopicWorker
    private let mailbox: TopicMailbox
    private var consumer: Consumer
    /// Received messages without a call, in the order of their arrival.
    private var waiting: [Waiting] = []
    private var calls: [Int: Call] = [:]
    private var callCount = 0
    private var isPaused = false
    private var problem: String?
    private var nextDeliveryCheck = ContinuousClock.now + deliveryInterval

    /// At this number of waiting messages, delivery is paused until half of them have a call.
    private static var waitingMax: Int { 1_000 }
    private static var batchMax: Int { 100 }
    private static var deliveryInterval: Duration { .seconds(30) }
    private static var waitMax: Duration { .seconds(1) }

    static func run(_ worker: TopicWorker, _ mailbox: TopicMailbox) throws(IntegrationError) {
        do throws(KafkaError) {
            var loop = try TopicLoop(worker, mailbox)
            let result = Result { () throws(KafkaError) in while !mailbox.isStopping { try loop.step() } }
            loop.end()
            try result.get()
        } catch {
            throw .kafka(error.description)
        }
    }

    private init(_ worker: TopicWorker, _ mailbox: TopicMailbox) throws(KafkaError) {
        let consumer = try Consumer(
            brokers: worker.settings.brokers, group: worker.group, topics: worker.topics,
            properties: worker.settings.properties)
        mailbox.attach(consumer.wakeup)
        (self.worker, self.mailbox) = (worker, mailbox)
        self.consumer = consumer
    }

    /// Cancels all calls, waits for their end, and stores the offsets of handled messages, which are committed when the
    /// consumer is closed.
    private mutating func end() {
        for call in calls.values { call.task.cancel() }
        while true {
            finishEnded()
            if calls.isEmpty { return }
            consumer.wakeup.wait(atMost: .seconds(1))
        }
    }

    private mutating func step() throws(KafkaError) {
        finishEnded()
        startCalls()
        pauseOrResume()
        let messages = try consumer.nextBatch(countMax: Self.batchMax, waitMax: retryWait)
        // Before the messages: they may be of a partition that was revoked and assigned again.
        for change in consumer.takeAssignmentChanges() { apply(change) }
        for message in messages { receive(message) }
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
        if let read = TopicMessage(message) {
            waiting.append(Waiting(message: read, receipt: message.receipt))
        } else {
            worker.logger.error(
                "message without Fieldpost's headers skipped",
                metadata: ["partition": "\(message.topicPartition)", "offset": "\(message.offset)"])
            consumer.finish([message])
        }
    }

    /// Another worker may handle a revoked partition's messages at once. Their offsets can no longer be committed here.
    private mutating func apply(_ change: AssignmentChange) {
        if case .assigned = change { return }
        waiting.removeAll { $0.receipt.partition == change.partition }
        for (number, call) in calls where call.waiting.receipt.partition == change.partition {
            calls[number]?.isRevoked = true
            call.task.cancel()
        }
    }

    private mutating func finishEnded() {
        for ended in mailbox.takeEnded() {
            guard let call = calls.removeValue(forKey: ended.call), !call.isRevoked else { continue }
            switch ended.outcome {
            case .handled: consumer.finish([call.waiting.receipt])
            case .cancelled: break
            case .failed(let reason): retry(call.waiting, reason)
            }
        }
    }

    /// Stores a message whose handler threw before all others, so that it precedes those of its object.
    private mutating func retry(_ failed: Waiting, _ reason: String) {
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
        var busy = Set(calls.values.map(\.waiting.message.subject))
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

    private mutating func start(_ next: Waiting) {
        callCount += 1
        let (number, worker, mailbox) = (callCount, worker, mailbox)
        let task = Task { mailbox.post(.init(call: number, outcome: await worker.handle(next.message))) }
        calls[number] = Call(waiting: next, task: task)
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
    fileprivate func handle(_ message: TopicMessage) async -> TopicMailbox.Ended.Outcome {
        do {
            try await handler(message)
            return .handled
        } catch {
            return Task.isCancelled ? .cancelled : .failed("\(error)")
        }
    }
}
