import Essentials
import Kafka
import Model

/// The engine of a worker as a value: which keys are in hand, what is decided next, which calls are made, what waits
/// and for how long. It has no clock and does no I/O: time comes in, and what is to be done comes out, one action at a
/// time.
///
/// A key is in one pair of hands at a time: while a call for it is under way its newer events wait. A message is
/// finished only when its key is done with, or parked. Environments take turns, and what is wrong with the back end or
/// the rows of one reaches no other.
///
/// The owner asks `next` for actions until there is none, which ends a round, and tells what came of each. One decision
/// is under way at a time; calls end whenever they do.
struct WorkScheduler<Message: Sendable, Call: ScheduledCall>: Sendable {
    typealias Answer = Call.Answer
    typealias Item = ScheduledItem<Answer>

    /// A key with its unfinished messages.
    struct InFlight: Sendable {
        var messages: [Message] = []
        /// A newer event came while the key was being decided or called.
        var isDirty = false
        /// One of those events is an edit.
        var isEdited = false
        var attemptCount: Int
        let partition: TopicPartition
        /// A call for it waits, is under way, or its answer is still to be decided.
        var isCalled = false
        /// What is answered when the call that waits is not made after all.
        var unmade: Answer?
        var kind = CallKind.read
        /// The trace of what is decided, called and recorded; of a newer event, which comes next, it is `newsTrace`.
        var trace: TraceContext?
        var newsTrace: TraceContext?
    }

    /// A call that waits.
    struct QueuedCall: Sendable {
        let key: WorkKey
        let call: Call
        let startBefore: ContinuousClock.Instant
    }

    /// PostgreSQL or Kafka cannot be used for now.
    struct Away: Sendable {
        let reason: String
        let until: ContinuousClock.Instant
    }

    /// Where a round is.
    enum Phase: Sendable { case messages, due, deciding(left: Int) }

    let limits: WorkerLimits
    /// Items to decide, by environment, and whose turn it is first.
    var queues: [EnvironmentID: [Item]] = [:]
    var turns: [EnvironmentID] = []
    /// What is being decided, or put down: it comes again when that fails.
    var deciding: [Item] = []
    /// Parts of a batch in which PostgreSQL refused something: they are decided one by one, before all else.
    var parts: [[Item]] = []
    /// A key whose row PostgreSQL refused, alone.
    var refusal: (item: Item, reason: String)?
    var inFlight: [WorkKey: InFlight] = [:]
    /// When each environment was decided last.
    var decidedAt: [EnvironmentID: ContinuousClock.Instant] = [:]
    /// What was decided already.
    var decidedPositions: DecidedPositions
    /// Messages of all keys in flight: a key that is called for long may have many.
    var heldMessageCount = 0
    var calls: CallQueue<QueuedCall>
    var breakers: [EnvironmentID: CircuitBreaker] = [:]
    /// The key whose call finds out whether a back end is there again.
    var probes: [EnvironmentID: WorkKey] = [:]
    /// When keys that found no room come back.
    var returns = RetrySchedule()
    /// Environments of which more calls waited than may be under way, since keys came back before their time.
    var filled: Set<EnvironmentID> = []
    /// Environments that had keys due when it was last looked.
    var dueEnvironmentCount = 1
    /// Environments of which as many keys were due as were taken: more may be.
    var moreDue: Set<EnvironmentID> = []
    var nextDue: ContinuousClock.Instant
    /// When the last message came that is to be decided.
    var newsAt: ContinuousClock.Instant?
    /// Environments with parked keys, as when it was last looked; `nil`: nobody has looked yet.
    var parkedEnvironments: Set<EnvironmentID>?
    /// Environments in which somebody holds a lock.
    var setAside: [EnvironmentID: SetAside] = [:]
    /// Why the last round could not be done, and until when the next one waits.
    private(set) var away: Away?
    private var backoff = Backoff(first: .milliseconds(100), waitMax: .seconds(5))
    private var fullSince: ContinuousClock.Instant?
    private(set) var assignment: Set<TopicPartition> = []
    private(set) var isStopping = false
    private var phase = Phase.messages
    var finished: [Message] = []
    var notes: [WorkNote] = []

    private static var fullMax: Duration { .seconds(5) }
    private static var waitMax: Duration { .milliseconds(50) }
    private static var messageWaitMax: Duration { .milliseconds(100) }

    init(_ limits: WorkerLimits, now: ContinuousClock.Instant) {
        self.limits = limits
        nextDue = now
        decidedPositions = DecidedPositions(now: now)
        calls = CallQueue(placesMax: limits.inFlightMax)
    }

    /// Nothing is under way: a stopping worker may end.
    var isIdle: Bool { inFlight.isEmpty && finished.isEmpty }

    /// A stopping worker does not wait for somebody else's lock: what cannot be recorded comes again to the next one.
    func isOnlySetAsideLeft(now: ContinuousClock.Instant) -> Bool {
        !setAside.isEmpty && calls.underWayCount == 0 && finished.isEmpty
            && inFlight.keys.allSatisfy { isSetAside($0.environment, now: now) }
            && queues.values.joined().allSatisfy { waits($0, now: now) }
    }

    /// No messages are taken any more; calls under way are waited for, and what has no place at once is taken back.
    mutating func stop() { isStopping = true }

    /// The worker has these partitions from now on: without any it takes no parked keys.
    mutating func assigned(_ partitions: Set<TopicPartition>) {
        guard partitions != assignment else { return }
        assignment = partitions
        // Others may have parked keys of those that came.
        parkedEnvironments = nil
    }

    // MARK: What is done next

    /// What is away, while the round waits to be done again, whatever wakes the worker: until then the owner does
    /// nothing but keep its place in the group. A worker that stops does not wait.
    func waiting(now: ContinuousClock.Instant) -> Away? { away.flatMap { !isStopping && $0.until > now ? $0 : nil } }

    /// - Returns: What is to be done now; `nil` ends the round.
    mutating func next(now: ContinuousClock.Instant) -> WorkAction<Message, Call>? {
        if let action = pending(now: now) { return action }
        switch phase {
        case .messages:
            phase = .due
            if let action = take(now: now) { return action }
            return next(now: now)
        case .due:
            phase = .deciding(left: turns.count)
            // Here, so that the next calls are under way while the answers are decided.
            freePlaces(now: now)
            if !isStopping, let request = dueRequest(now: now) { return .takeDue(request) }
            return next(now: now)
        case .deciding(let left):
            guard left > 0 || !parts.isEmpty || refusal != nil, let batch = nextBatch(now: now) else {
                phase = .messages
                return nil
            }
            phase = .deciding(left: max(0, left - 1))
            return batch
        }
    }

    /// What does not wait for its turn.
    private mutating func pending(now: ContinuousClock.Instant) -> WorkAction<Message, Call>? {
        if !finished.isEmpty {
            defer { finished = [] }
            return .finish(finished)
        }
        if !notes.isEmpty { return .note(notes.removeFirst()) }
        let started = startCalls(now: now)
        if isStopping { withdrawCalls(now: now) }
        return started.isEmpty ? nil : .start(started)
    }

    private mutating func take(now: ContinuousClock.Instant) -> WorkAction<Message, Call>? {
        let isBusy = turns.contains { hasWork($0, now: now) }
        if isStopping { return isBusy ? nil : .wait(Self.waitMax) }
        let waitMax = isBusy ? .zero : gatheringMax(now: now)
        let room = roomForMessages(now: now)
        guard room > 0 else {
            let since = fullSince ?? now
            fullSince = since
            // After a while Kafka is asked for nothing, so that it knows the worker is alive.
            let isPaused = now - since > Self.fullMax
            if isBusy, !isPaused { return nil }
            return .take(countMax: 0, waitMax: min(waitMax, Self.waitMax), isPaused: isPaused)
        }
        fullSince = nil
        let wait = min(waitMax, max(dueNext - now, .zero), Self.messageWaitMax)
        return .take(countMax: min(room, limits.batchCountMax), waitMax: wait, isPaused: false)
    }

    /// The round is done again, after a wait that grows: PostgreSQL or Kafka could not do what it was asked for.
    ///
    /// - Parameter random: From 0 up to 1.
    mutating func failed(_ reason: String, now: ContinuousClock.Instant, random: Double) {
        away = Away(reason: reason, until: now + backoff.failed(random: random))
        putBack()
        phase = .messages
    }

    /// A round was done.
    mutating func succeeded() {
        away = nil
        backoff.succeeded()
    }
}
