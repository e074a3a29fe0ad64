import Essentials
package import Kafka
package import Logging
import Metrics
import Model
import Postgres
import Realms
package import Runtime
import Synchronization

/// Where a worker works.
package struct WorkerPlace: Sendable {
    package let group: String
    package let topics: [String]
    package let brokers: String
    /// librdkafka's properties.
    package private(set) var properties: [String: String]
    /// A libpq connection string.
    package let conninfo: String

    package init(group: String, topics: [String], brokers: String, properties: [String: String], conninfo: String) {
        self.group = group
        self.topics = topics
        self.brokers = brokers
        self.properties = properties
        self.conninfo = conninfo
    }

    /// The place of one of several workers in a process: `group.instance.id` is one member's, and each worker is one.
    package func member(_ index: Int) -> WorkerPlace {
        var place = self
        if let id = properties["group.instance.id"] { place.properties["group.instance.id"] = "\(id)-\(index)" }
        return place
    }
}

/// How much a worker takes on. Each bound pushes back: what is beyond it stays in Kafka or in PostgreSQL.
package struct WorkerLimits: Sendable {
    /// Messages taken at a time.
    package var batchCountMax = 500
    /// Calls under way at a time, for each environment.
    package var inFlightMax = 64
    /// Keys in flight at a time: being called, waiting for a call, or waiting for their turn.
    package var heldMax = 2_048
    /// How long a parked key that was taken stays with this worker before another may take it.
    package var dueLease = Duration.seconds(30)
    /// Whether an answer that was not looked at counts as a call under way: where answers are large.
    package var answersKeepPlaces = false
    /// How often parked keys are looked for, beside when there is room for what waits for it.
    package var dueInterval = Duration.milliseconds(250)
    /// Tries of a key before it waits for a person.
    package var attemptsMax = 20
    package var circuit = CircuitBreaker()
    /// The longest that another system is left alone because it asks for it.
    package var askedWaitMax = Duration.seconds(300)
    /// How long a call may wait for its turn before others of its person are put aside. An environment whose calls wait
    /// longer takes no more room than it has, and its messages are not left in Kafka, where others' are behind them.
    package var turnMax = Duration.seconds(1)
    /// How long calls are made as an environment's back end was found, before it is looked up again.
    package var callerAgeMax = Duration.seconds(10)

    package init() {}

    /// Messages of keys in flight. What is decided for a key comes back as a message of it: there is room for that,
    /// however long the calls of all keys take.
    var heldMessagesMax: Int { heldMax * 4 }

    /// Calls of one environment that are in flight at a time beside so many of others: a part of what these leave over,
    /// so that for many slow back ends there is room for one more.
    func heldMax(beside others: Int) -> Int {
        let free = heldMax - others
        return max(1, free / 4, min(inFlightMax, free / 2))
    }

    /// The same when the next one is of a person who has none.
    func heldMaxOfNew(beside others: Int) -> Int { max(1, (heldMax - others) / 2) }
}

/// One loop that owns a Kafka consumer and a PostgreSQL connection and does what a `Handler` decides.
///
/// A key is in one pair of hands at a time: while a call for it is under way its newer events wait. Offsets are stored
/// below the lowest unfinished message only. When PostgreSQL is away the same inputs are decided again, for ever, and
/// the consumer keeps its place in the group.
package struct Worker<H: Handler>: ~Copyable {
    struct Queued {
        let input: WorkItem<H.Answer>
        let partition: TopicPartition
        /// The answer, if it is one, is that of a call that was made.
        var wasCalled = true
    }

    /// A key with its unfinished messages.
    struct InFlight {
        var messages: [Message] = []
        /// A newer event came while a call was under way.
        var isDirty = false
        var attemptCount: Int
        let partition: TopicPartition
        /// A call for it waits, is under way, or its answer is still to be decided.
        var isCalled = false
        /// What is answered when the call that waits is not made after all.
        var unmade: H.Answer?
        /// The kind of its call.
        var kind = CallKind.read
    }

    struct Key: Hashable, Sendable {
        let environment: EnvironmentID
        let subject: EventSubject
    }

    /// How an environment's calls are made.
    struct Caller {
        let make: @Sendable (H.Call) async -> H.Answer
        let madeAt: ContinuousClock.Instant
        let revision: Int64
    }

    /// PostgreSQL or Kafka cannot be used for now.
    struct Away {
        let reason: String
        let until: ContinuousClock.Instant
    }

    let group: String
    let limits: WorkerLimits
    let logger: Logger
    var handler: H
    var consumer: Consumer
    var connection: Connection
    var intake: EventReader
    let calls: CallWindow<Key, H.Answer>

    /// Messages from Kafka that were not looked at yet: kept when PostgreSQL fails on the way.
    var taken: [Message] = []
    var queued: [Queued] = []
    /// What is decided again after this round.
    var missed: [Queued] = []
    var inFlight: [Key: InFlight] = [:]
    /// Messages of all keys in flight: a key that is called for long may have many.
    var heldMessageCount = 0
    var breakers: [EnvironmentID: CircuitBreaker] = [:]
    /// The key whose call finds out whether a back end is there again.
    var probes: [EnvironmentID: Key] = [:]
    var callers: [EnvironmentID: Caller] = [:]
    /// The partitions by which the rates were shared out, and when they are set anew.
    var ratedAssignment: Set<TopicPartition> = []
    var nextRates = ContinuousClock.now
    /// When keys that found no room come back.
    var returns = RetrySchedule()
    /// Environments that had keys due when it was last looked.
    var dueEnvironmentCount = 1
    /// Environments in which somebody holds a lock.
    var setAside: [EnvironmentID: SetAside] = [:]
    /// Why an environment's calls cannot be made.
    var unavailable: [EnvironmentID: String] = [:]
    /// Why the last round could not be done, and until when the next one waits.
    var away: Away?
    var backoff = Backoff(first: .milliseconds(100), waitMax: .seconds(5))
    var nextDue = ContinuousClock.now
    /// Environments of which as many keys were due as were taken: more may be.
    var moreDue: Set<EnvironmentID> = []
    var fullSince: ContinuousClock.Instant?
    var isPaused = false

    let consumed: Metrics.Counter
    let parkedCounter: Metrics.Counter
    let inFlightGauge: Gauge
    let lostCounter: Metrics.Counter

    package init(_ handler: H, at place: WorkerPlace, limits: WorkerLimits, logger: Logger) throws {
        let group = place.group
        var connection = try Connection(place.conninfo, limits: Limits(lockMax: Self.lockMax), check: Lineage.check)
        try Schema.check(on: &connection)
        let consumer = try Consumer(
            brokers: place.brokers, group: group, topics: place.topics, properties: place.properties)
        calls = CallWindow(
            placesMax: limits.inFlightMax, answersKeepPlaces: limits.answersKeepPlaces, wakeup: consumer.wakeup)
        self.handler = handler
        self.group = group
        self.limits = limits
        self.logger = logger
        self.consumer = consumer
        self.connection = connection
        intake = EventReader(group: group, logger: logger)
        let dimensions = [("messaging.consumer.group.name", group)]
        consumed = Metrics.Counter(label: "messaging.client.consumed.messages", dimensions: dimensions)
        parkedCounter = Metrics.Counter(label: "fieldpost.parked.keys", dimensions: dimensions)
        inFlightGauge = Gauge(label: "fieldpost.calls.in_flight", dimensions: dimensions)
        lostCounter = Metrics.Counter(label: "fieldpost.partitions.taken_away", dimensions: dimensions)
    }

    /// What wakes the loop before its wait is over.
    package var wakeup: Wakeup { consumer.wakeup }

    /// Works until the process stops, and tells its health.
    package mutating func run(_ control: WorkerControl) throws {
        control.whenStopping(wakeup.signal)
        try run {
            control.isStopping
        } report: { problem in
            if let problem { control.impaired(problem) } else { control.progressed() }
        }
    }

    /// Goes round until it is asked to stop and what was begun is recorded. What cannot be recorded then comes again
    /// to the next worker: PostgreSQL is not waited for.
    ///
    /// - Parameter report: Called after every round: `nil`, or why the worker is not ready.
    mutating func run(isStopping: () -> Bool, report: (String?) -> Void) throws {
        while true {
            let isStopping = isStopping()
            if isStopping, isIdle || isOnlySetAsideLeft { return }
            report(try step(isStopping: isStopping))
            if isStopping, away != nil { return }
        }
    }

    /// One round: take what came, decide it, write what was decided, make calls. After a round that could not be
    /// done, rounds only poll until the wait is over, and then do it again.
    ///
    /// - Parameter isStopping: No new messages are taken; calls under way are waited for and recorded, those that have
    ///   not begun are taken back.
    /// - Returns: `nil`, or what is away.
    /// - Throws: What only a new worker can get over: a fatal Kafka error, a mistake in the program's SQL.
    mutating func step(isStopping: Bool = false) throws -> String? {
        if !isStopping, let reason = try waitWhileAway() { return reason }
        do {
            if isStopping { withdrawCalls() }
            takeAnswers(isStopping: isStopping)
            if !isStopping { calls.startWaiting() }
            try renewRates()
            let isAllTaken = queued.allSatisfy { waits($0) }
            if isAllTaken, !isStopping {
                try takeMessages()
                try takeDue()
            } else if isAllTaken {
                consumer.wakeup.wait(atMost: .milliseconds(50))
                consumer.wakeup.drain()
            }
            try decidePending()
            inFlightGauge.record(calls.underWayCount)
            away = nil
            backoff.succeeded()
            return consumer.connectionProblem
        } catch let error as PostgresError where error.isRetriable {
            return failed(error.description)
        } catch let error as KafkaError where !error.isFatal {
            return failed(error.description, level: error.advice == nil ? .warning : .error)
        }
    }

    /// Nothing is under way: a stopping worker may end.
    var isIdle: Bool { queued.isEmpty && inFlight.isEmpty }
}
