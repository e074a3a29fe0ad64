import Essentials
import Kafka
import Model

/// The engine of a worker as a value: keys in flight, order of decisions, calls, and waits. It has no clock and does no
/// I/O: times are parameters, and `next` returns one action at a time.
///
/// At most one task per key is in flight: while a call is in flight, newer events of its key wait. A message is
/// finished when its key is done or deferred. Environments are queued fairly (round robin), and failures of one
/// environment's back end or rows do not affect others.
///
/// The owner calls `next` until it returns `nil`, which ends a cycle, and reports the result of each action. One batch
/// is decided at a time; calls end at any time.
struct WorkScheduler<Message: Sendable, Call: ScheduledCall>: Sendable {
    typealias CallResult = Call.CallResult
    typealias Item = ScheduledItem<CallResult>

    /// A key with its unfinished messages.
    struct InFlight: Sendable {
        var messages: [Message] = []
        /// A newer event arrived while the key was decided or called.
        var isDirty = false
        /// One of those events is an edit.
        var isEdited = false
        var attemptCount: Int
        let partition: TopicPartition
        /// A call of the key waits or is in flight, or its result is not decided yet.
        var isCalled = false
        /// The result if the waiting call is not made.
        var resultWhenSkipped: CallResult?
        var kind = CallKind.read
        /// Trace of the current decision and call. A newer event's trace is `nextTrace`.
        var trace: TraceContext?
        var nextTrace: TraceContext?
    }

    /// A waiting call.
    struct QueuedCall: Sendable {
        let key: WorkKey
        let call: Call
        let startBefore: ContinuousClock.Instant
    }

    /// PostgreSQL or Kafka is unavailable.
    struct Outage: Sendable {
        let reason: String
        let until: ContinuousClock.Instant
        let failureCount: Int
    }

    /// The phase of a cycle.
    enum Phase: Sendable { case messages, due, dueTaken, deciding(left: Int) }

    let limits: WorkerLimits
    /// Queued items by environment, and the order in which environments are served.
    var queues: [EnvironmentID: [Item]] = [:]
    var roundRobin: [EnvironmentID] = []
    /// The current batch; it is re-queued if it fails.
    var deciding: [Item] = []
    /// Halves of a batch from which PostgreSQL rejected a value. They are decided first.
    var batchHalves: [[Item]] = []
    /// The one key whose row PostgreSQL rejected.
    var rejection: (item: Item, reason: String)?
    var inFlight: [WorkKey: InFlight] = [:]
    /// Time of each environment's last decision.
    var decidedAt: [EnvironmentID: ContinuousClock.Instant] = [:]
    /// Positions that decisions already cover.
    var decisionHistory: DecisionHistory
    /// Messages of all keys in flight; a key with a long call may have many.
    var heldMessageCount = 0
    var calls: CallQueue<QueuedCall>
    /// Whether a decision has led to a call.
    var makesCalls = false
    var breakers: [EnvironmentID: CircuitBreaker] = [:]
    /// The reason of the latest failure of each back end since it recovered.
    var outageReasons: [EnvironmentID: String] = [:]
    /// The key whose call probes a back end.
    var probes: [EnvironmentID: WorkKey] = [:]
    /// Planned retries of keys that found no free slot.
    var slotSchedule = SlotSchedule()
    /// Environments that have had more waiting calls than slots since their keys last became due early.
    var saturated: Set<EnvironmentID> = []
    /// Number of environments with due keys at the last scan.
    var dueEnvironmentCount = 1
    /// Environments in which the last scan reached its limit: more keys may be due.
    var moreDue: Set<EnvironmentID> = []
    var nextDue: ContinuousClock.Instant
    /// Time of the last scan for due keys.
    var scannedAt: ContinuousClock.Instant
    /// Arrival of the last message that needs a decision.
    var lastEventAt: ContinuousClock.Instant?
    /// Environments with deferred keys at the last scan; `nil` before the first one.
    var environmentsWithDeferredKeys: Set<EnvironmentID>?
    /// Environments in which another transaction holds a lock.
    var lockedEnvironments: [EnvironmentID: LockBackoff] = [:]
    /// The reason why the last cycle failed, and the time of the next one.
    private(set) var outage: Outage?
    private var backoff = Backoff(first: .milliseconds(100), waitMax: .seconds(5))
    private var fullSince: ContinuousClock.Instant?
    private(set) var assignment: Set<TopicPartition> = []
    private(set) var isStopping = false
    private var phase = Phase.messages
    var finished: [Message] = []
    var logEvents: [SchedulerLogEvent] = []

    private static var fullMax: Duration { .seconds(5) }
    private static var waitMax: Duration { .milliseconds(50) }
    private static var messageWaitMax: Duration { .seconds(1) }
    /// While calls wait for a rate limit or a slot, or results for a lock: no event ends these waits.
    private static var pendingWaitMax: Duration { .milliseconds(100) }

    init(_ limits: WorkerLimits, now: ContinuousClock.Instant) {
        self.limits = limits
        (nextDue, scannedAt) = (now, now)
        decisionHistory = DecisionHistory(now: now)
        calls = CallQueue(slotsMax: limits.inFlightMax)
    }

    /// Nothing is in flight: a stopping worker may end.
    var isIdle: Bool { inFlight.isEmpty && finished.isEmpty }

    /// A stopping worker does not wait for another transaction's lock: unrecorded results are redelivered to the next
    /// worker.
    func hasOnlyLockedWork(now: ContinuousClock.Instant) -> Bool {
        !lockedEnvironments.isEmpty && calls.inFlightCount == 0 && finished.isEmpty
            && inFlight.keys.allSatisfy { isLocked($0.environment, now: now) }
            && queues.values.joined().allSatisfy { isBlocked($0, now: now) }
    }

    /// Stops taking messages. Calls in flight are awaited; calls without a free slot are withdrawn.
    mutating func stop() { isStopping = true }

    /// Sets the assigned partitions. Without any, no deferred keys are taken.
    mutating func assigned(_ partitions: Set<TopicPartition>) {
        guard partitions != assignment else { return }
        assignment = partitions
        // The new partitions may have deferred keys of other workers.
        environmentsWithDeferredKeys = nil
        nextDue = min(nextDue, scannedAt + limits.dueInterval)
    }

    // MARK: Next action

    /// The current outage, until its backoff is over. Until then the owner only polls, to stay a member of its group. A
    /// stopping worker does not wait.
    func currentOutage(now: ContinuousClock.Instant) -> Outage? {
        outage.flatMap { !isStopping && $0.until > now ? $0 : nil }
    }

    /// - Returns: The next action; `nil` ends the cycle.
    mutating func next(now: ContinuousClock.Instant) -> WorkAction<Message, Call>? {
        if let action = pending(now: now) { return action }
        switch phase {
        case .messages:
            phase = .due
            if let action = take(now: now) { return action }
            return next(now: now)
        case .due:
            phase = .dueTaken
            // Now, so that the next calls are in flight while the results are decided.
            freeSlots(now: now)
            if !isStopping, let request = dueRequest(now: now) { return .takeDue(request) }
            return next(now: now)
        case .dueTaken:
            phase = .deciding(left: roundRobin.count)
            return next(now: now)
        case .deciding(let left):
            guard left > 0 || !batchHalves.isEmpty || rejection != nil, let batch = nextBatch(now: now) else {
                phase = .messages
                return nil
            }
            phase = .deciding(left: max(0, left - 1))
            return batch
        }
    }

    /// Actions that precede all others.
    private mutating func pending(now: ContinuousClock.Instant) -> WorkAction<Message, Call>? {
        if !finished.isEmpty {
            defer { finished = [] }
            return .finish(finished)
        }
        if !logEvents.isEmpty { return .log(logEvents.removeFirst()) }
        let started = startCalls(now: now)
        if isStopping { for environment in calls.environments { withdraw(environment, now: now) } }
        return started.isEmpty ? nil : .start(started)
    }

    private mutating func take(now: ContinuousClock.Instant) -> WorkAction<Message, Call>? {
        let isBusy = roundRobin.contains { hasWork($0, now: now) }
        if isStopping { return isBusy ? nil : .wait(Self.waitMax) }
        let waitMax = isBusy ? .zero : gatheringMax(now: now)
        let room = roomForMessages(now: now)
        guard room > 0 else {
            let since = fullSince ?? now
            fullSince = since
            // After `fullMax`, the worker polls with paused partitions to stay a member of its group.
            let isPaused = now - since > Self.fullMax
            if isBusy, !isPaused { return nil }
            return .take(countMax: 0, waitMax: min(waitMax, Self.waitMax), isPaused: isPaused)
        }
        fullSince = nil
        let isPending = !queues.isEmpty || calls.count > calls.inFlightCount || !slotSchedule.environments.isEmpty
        let eventMax = isPending ? Self.pendingWaitMax : Self.messageWaitMax
        let wait = min(waitMax, max(dueNext - now, .zero), eventMax)
        return .take(countMax: min(room, limits.batchCountMax), waitMax: wait, isPaused: false)
    }

    /// The cycle failed because PostgreSQL or Kafka is unavailable. It is retried with exponential backoff.
    ///
    /// - Parameter random: From 0 up to 1.
    mutating func failed(_ reason: String, now: ContinuousClock.Instant, random: Double) {
        outage = Outage(
            reason: reason, until: now + backoff.failed(random: random),
            failureCount: (outage?.failureCount ?? 0) + 1)
        requeueBatch()
        phase = .messages
    }

    /// The cycle succeeded.
    mutating func succeeded() {
        outage = nil
        backoff.succeeded()
    }
}
