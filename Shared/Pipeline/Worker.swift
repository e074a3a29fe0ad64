package import Kafka
package import Logging
import Metrics
import Model
import Postgres
import Realms
import Synchronization

/// Where a worker works.
package struct WorkerPlace: Sendable {
    package let group: String
    package let topics: [String]
    package let brokers: String
    /// librdkafka's properties.
    package let properties: [String: String]
    /// A libpq connection string.
    package let conninfo: String

    package init(group: String, topics: [String], brokers: String, properties: [String: String], conninfo: String) {
        self.group = group
        self.topics = topics
        self.brokers = brokers
        self.properties = properties
        self.conninfo = conninfo
    }
}

/// How much a worker takes on. Each bound pushes back: what is beyond it stays in Kafka or in PostgreSQL.
package struct WorkerLimits: Sendable {
    /// Messages taken at a time.
    package var batchCountMax = 500
    /// Calls under way at a time.
    package var inFlightMax = 64
    /// Keys held at a time: being called, waiting for a call, or waiting for their turn.
    package var heldMax = 1_024
    /// How long a parked key that was taken stays with this worker before another may take it.
    package var dueLease = Duration.seconds(120)
    /// How often parked keys are looked for.
    package var dueInterval = Duration.milliseconds(250)
    /// Tries of a key before it waits for a person.
    package var attemptsMax = 20
    package var circuit = CircuitBreaker()

    package init() {}
}

/// One loop that owns a Kafka consumer and a PostgreSQL connection and does what a `Handler` decides.
///
/// A key is in one pair of hands at a time: while a call for it is under way its newer events wait. Offsets are stored
/// below the lowest unfinished message only. When PostgreSQL is away the same inputs are decided again, for ever, and
/// the consumer keeps its place in the group.
package struct Worker<H: Handler>: ~Copyable {
    struct Pending {
        let input: Input<H.Answer>
        let partition: TopicPartition
    }

    /// A key with its unfinished messages.
    struct Held {
        var messages: [Message] = []
        /// A newer event came while a call was under way.
        var isOverdue = false
        var attemptCount: Int
        let partition: TopicPartition
    }

    struct Key: Hashable {
        let environment: EnvironmentID
        let subject: EventSubject
    }

    struct Ready {
        let key: Key
        let call: H.Call
        let startBefore: ContinuousClock.Instant
    }

    private let group: String
    private let limits: WorkerLimits
    private let logger: Logger
    private var handler: H
    private var consumer: Consumer
    private var connection: Connection
    private var intake: Intake
    private let answers = Inbox<(Key, H.Answer)>()

    /// Messages from Kafka that were not looked at yet: kept when PostgreSQL fails on the way.
    private var taken: [Message] = []
    private var pending: [Pending] = []
    private var held: [Key: Held] = [:]
    private var ready: [Ready] = []
    private var inFlightCount = 0
    private var breakers: [EnvironmentID: CircuitBreaker] = [:]
    /// The key whose call finds out whether a back end is there again.
    private var probes: [EnvironmentID: Key] = [:]
    private var callers: [EnvironmentID: @Sendable (H.Call) async -> H.Answer] = [:]
    private var failureCount = 0
    private var nextDue = ContinuousClock.now
    private var fullSince: ContinuousClock.Instant?
    private var isPaused = false

    private let consumed: Metrics.Counter
    private let parkedCounter: Metrics.Counter
    private let inFlightGauge: Gauge

    package init(_ handler: H, at place: WorkerPlace, limits: WorkerLimits, logger: Logger) throws {
        let group = place.group
        var connection = try Connection(place.conninfo)
        try Schema.check(on: &connection)
        let consumer = try Consumer(
            brokers: place.brokers, group: group, topics: place.topics, properties: place.properties)
        self.handler = handler
        self.group = group
        self.limits = limits
        self.logger = logger
        self.consumer = consumer
        self.connection = connection
        intake = Intake(group: group, logger: logger)
        let dimensions = [("messaging.consumer.group.name", group)]
        consumed = Metrics.Counter(label: "messaging.client.consumed.messages", dimensions: dimensions)
        parkedCounter = Metrics.Counter(label: "fieldpost.parked.keys", dimensions: dimensions)
        inFlightGauge = Gauge(label: "fieldpost.calls.in_flight", dimensions: dimensions)
    }

    /// What wakes the loop before its wait is over.
    package var wakeup: Wakeup { consumer.wakeup }

    /// Goes round until it is asked to stop and what was begun is recorded.
    ///
    /// - Parameter report: Called after every round: `nil`, or why the round could not be done.
    package mutating func run(isStopping: () -> Bool, report: (String?) -> Void) throws {
        while !isStopping() || !isIdle { report(try step(isStopping: isStopping())) }
    }

    /// One round: take what came, decide it, write what was decided, start calls.
    ///
    /// - Parameter isStopping: No new messages are taken; calls under way are waited for and recorded.
    /// - Returns: `nil`, or why the round could not be done. It is done again by the next call.
    /// - Throws: What only a new worker can get over: a fatal Kafka error, a mistake in the program's SQL.
    mutating func step(isStopping: Bool = false) throws -> String? {
        do {
            try takeAnswers()
            if pending.isEmpty, !isStopping {
                try takeMessages()
                try takeDue()
            } else if pending.isEmpty {
                consumer.wakeup.wait(atMost: .milliseconds(50))
                consumer.wakeup.drain()
            }
            try decidePending()
            startCalls()
            failureCount = 0
            return nil
        } catch let error as PostgresError where error.isRetriable {
            try waitAfterFailure()
            return error.description
        } catch let error as KafkaError where !error.isFatal {
            try waitAfterFailure()
            return error.description
        }
    }

    /// Nothing is under way: a stopping worker may end.
    var isIdle: Bool { pending.isEmpty && held.isEmpty }

    // MARK: Taking

    private mutating func takeAnswers() throws {
        for (key, answer) in answers.takeAll() {
            inFlightCount -= 1
            guard let held = held[key] else { continue }
            pending.append(
                Pending(
                    input: Input(
                        environment: key.environment, subject: key.subject, origin: .answer(answer),
                        attemptCount: held.attemptCount), partition: held.partition))
        }
    }

    /// Takes messages while there is room; a full worker keeps its place in the group without them.
    private mutating func takeMessages() throws {
        let room = limits.heldMax - held.count
        guard room > 0 else {
            let since = fullSince ?? .now
            fullSince = since
            if !isPaused, ContinuousClock.now - since > .seconds(5) { try pause() }
            if isPaused {
                taken += try consumer.nextBatch(countMax: 1, waitMax: .milliseconds(50))
            } else {
                consumer.wakeup.wait(atMost: .milliseconds(50))
                consumer.wakeup.drain()
            }
            return
        }
        fullSince = nil
        try resume()
        if taken.isEmpty {
            let waitMax = nextDue - ContinuousClock.now
            taken = try consumer.nextBatch(
                countMax: min(room, limits.batchCountMax), waitMax: min(max(waitMax, .zero), .milliseconds(100)))
            consumed.increment(by: taken.count)
        }
        for line in consumer.takeLogs() { logger.debug("\(line.facility): \(line.message)") }
        if !taken.isEmpty { try admitTaken() }
    }

    /// When it fails, the same messages are admitted again by the next round: what it did so far does no harm twice.
    private mutating func admitTaken() throws {
        let admitted = try intake.admit(taken, consumer: &consumer, connection: &connection)
        if !admitted.poison.isEmpty {
            for (message, reason) in admitted.poison {
                logger.error(
                    "poison",
                    metadata: ["topic": "\(message.topic)", "offset": "\(message.offset)", "reason": "\(reason)"])
            }
            try connection.run(
                admitted.poison.map { ParkedKeys.poison($0.message, reason: $0.reason, group: group) })
            consumer.finish(admitted.poison.map(\.message))
        }
        for event in admitted.events { hold(event) }
        consumer.finish(admitted.dropped)
        taken = []
    }

    private mutating func hold(_ event: Event) {
        // The intake has checked it.
        guard let subject = try? event.subject() else { return }
        let key = Key(environment: event.environment, subject: subject)
        if held[key] != nil {
            // Its earlier event, or a call, is under way: the key is decided again afterwards.
            held[key]?.messages.append(event.message)
            held[key]?.isOverdue = true
            return
        }
        held[key] = Held(messages: [event.message], attemptCount: 0, partition: event.message.topicPartition)
        pending.append(
            Pending(
                input: Input(environment: key.environment, subject: key.subject, origin: .event, attemptCount: 0),
                partition: event.message.topicPartition))
    }

    private mutating func takeDue() throws {
        guard ContinuousClock.now >= nextDue else { return }
        nextDue = .now + limits.dueInterval
        let room = limits.heldMax - held.count
        let assignment = consumer.assignment
        guard room > 0, !assignment.isEmpty else { return }
        let now = ContinuousClock.now
        let away = breakers.filter { !$0.value.isClosed }
        let rows = try connection.run(
            ParkedKeys.takeDue(
                group: group, partitions: assignment, except: away.filter { !$0.value.mayProbe(now: now) }.map(\.key),
                lease: limits.dueLease, countMax: min(room, away.isEmpty ? limits.batchCountMax : 32)))
        for due in try ParkedKeys.due(rows) {
            let key = Key(environment: due.environment, subject: due.subject)
            if held[key] != nil { continue }
            held[key] = Held(attemptCount: due.attemptCount, partition: due.partition)
            pending.append(
                Pending(
                    input: Input(
                        environment: key.environment, subject: key.subject, origin: .retry,
                        attemptCount: due.attemptCount), partition: due.partition))
        }
    }

    // MARK: Deciding

    private mutating func decidePending() throws {
        while !pending.isEmpty {
            let environment = pending[0].input.environment
            var inputs = pending.filter { $0.input.environment == environment }
            if inputs.count > limits.batchCountMax { inputs.removeLast(inputs.count - limits.batchCountMax) }
            let taken = Set(inputs.map(\.input.subject))
            try decide(inputs, in: environment)
            // Decided or put back by `decide`: only what it put back, and what was not taken, is still pending.
            pending.removeAll { $0.input.environment == environment && taken.contains($0.input.subject) }
            pending.append(contentsOf: missed)
            missed = []
        }
    }

    private var missed: [Pending] = []

    /// Decides inputs of one environment and commits what was decided. Refused data is bisected until the one bad key
    /// is alone, and parked dead.
    private mutating func decide(_ inputs: [Pending], in environment: EnvironmentID) throws {
        do {
            try decideTogether(inputs, in: environment)
        } catch let error as PostgresError where error.isDataError {
            if inputs.count == 1 {
                try park(inputs[0], in: environment, reason: "PostgreSQL refused it: \(error.message)")
                return
            }
            let half = inputs.count / 2
            try decide(Array(inputs[..<half]), in: environment)
            try decide(Array(inputs[half...]), in: environment)
        }
    }

    private mutating func decideTogether(_ inputs: [Pending], in environment: EnvironmentID) throws {
        let (admitted, waiting) = admit(inputs, in: environment)
        var batch = WriteBatch(environment: environment)
        var nexts: [Next<H.Call>] = []
        if !admitted.isEmpty {
            nexts = try handler.decide(admitted.map(\.input), in: environment, batch: &batch, on: &connection)
        }
        if callers[environment] == nil, nexts.contains(where: \.isCall) {
            callers[environment] = try handler.caller(on: &connection, for: environment)
        }
        var parkings: [ParkedKeys.Parking] = []
        var released: [(id: String, decision: Int)] = []
        for (index, item) in admitted.enumerated() {
            switch nexts[index] {
            case .finished: released.append((item.input.subject.id.text, index))
            case .call: break
            case .park(let reason, let after, let cause):
                parkings.append(parking(item, reason, after, cause, decision: index))
            case .dead(let reason): parkings.append(parking(item, reason, nil, .planned, decision: index))
            }
        }
        for (offset, (item, wait)) in waiting.enumerated() {
            parkings.append(
                ParkedKeys.Parking(
                    subject: item.input.subject, partition: item.partition, reason: "the back end is away",
                    isDead: false, isCircuit: true, attemptCount: item.input.attemptCount, wait: wait,
                    decision: admitted.count + offset))
        }
        if !parkings.isEmpty { batch.also(ParkedKeys.park(parkings, group: group, environment: environment)) }
        if !released.isEmpty { batch.also(ParkedKeys.release(released, group: group, environment: environment)) }
        let outcome = try batch.commit(on: &connection)
        parkedCounter.increment(by: parkings.count)
        for (index, item) in admitted.enumerated() {
            if outcome.missed.contains(index) { missed.append(item) } else { follow(nexts[index], item) }
        }
        for (item, _) in waiting { release(Key(environment: environment, subject: item.input.subject)) }
    }

    /// Parts the inputs that may need a call now from those that wait until the back end is there again.
    private mutating func admit(
        _ inputs: [Pending], in environment: EnvironmentID
    ) -> (admitted: [Pending], waiting: [(Pending, Duration)]) {
        var breaker = breakers[environment] ?? limits.circuit
        var admitted: [Pending] = []
        var waiting: [(Pending, Duration)] = []
        for item in inputs {
            let key = Key(environment: environment, subject: item.input.subject)
            if case .answer = item.input.origin {
                admitted.append(item)
                continue
            }
            // It is the probe already, and comes again because its writes missed or failed.
            if probes[environment] == key, !breaker.isClosed, !breaker.mayProbe(now: .now) {
                admitted.append(item)
                continue
            }
            switch breaker.admit(now: .now) {
            case .call: admitted.append(item)
            case .probe:
                probes[environment] = key
                admitted.append(item)
            case .wait(let wait): waiting.append((item, max(wait, .milliseconds(100))))
            }
        }
        breakers[environment] = breaker
        return (admitted, waiting)
    }

    /// Does what comes after the writes.
    private mutating func follow(_ next: Next<H.Call>, _ item: Pending) {
        let key = Key(environment: item.input.environment, subject: item.input.subject)
        var breaker = breakers[key.environment, default: limits.circuit]
        switch next {
        case .call(let call, let startBefore):
            ready.append(Ready(key: key, call: call, startBefore: startBefore))
            return
        case .park(_, _, .backendAway):
            if breaker.wasAway(now: .now) {
                logger.warning("the back end is away, its keys wait", metadata: ["environment": "\(key.environment)"])
            }
        case .finished, .dead, .park:
            if case .answer = item.input.origin, breaker.answered() {
                logger.notice("the back end is there again", metadata: ["environment": "\(key.environment)"])
                // When this fails they come back by themselves, each at its time.
                _ = try? connection.run(ParkedKeys.closeCircuit(group: group, environment: key.environment))
            } else if probes[key.environment] == key {
                breaker.probeWasNotMade(now: .now)
            }
        }
        if probes[key.environment] == key { probes[key.environment] = nil }
        breakers[key.environment] = breaker
        release(key)
    }

    private func parking(
        _ item: Pending, _ reason: String, _ after: Duration?, _ cause: ParkCause, decision: Int
    ) -> ParkedKeys.Parking {
        let count = item.input.attemptCount + (cause == .planned ? 0 : 1)
        let isDead = after == nil || count >= limits.attemptsMax
        if isDead {
            logger.error(
                "a key waits for a person",
                metadata: [
                    "environment": "\(item.input.environment)", "key": "\(item.input.subject)", "reason": "\(reason)",
                ])
        }
        return ParkedKeys.Parking(
            subject: item.input.subject, partition: item.partition, reason: reason, isDead: isDead, isCircuit: false,
            attemptCount: count, wait: after ?? .zero, decision: decision)
    }

    /// Parks one key dead in a transaction of its own.
    private mutating func park(_ item: Pending, in environment: EnvironmentID, reason: String) throws {
        let parking = parking(item, reason, nil, .planned, decision: 0)
        try connection.run(ParkedKeys.park([parking], group: group, environment: environment))
        let key = Key(environment: environment, subject: item.input.subject)
        if probes[environment] == key {
            breakers[environment]?.probeWasNotMade(now: .now)
            probes[environment] = nil
        }
        release(key)
    }

    /// Lets go of a key: its messages are finished. One with a newer event is decided again.
    private mutating func release(_ key: Key) {
        guard var entry = held.removeValue(forKey: key) else { return }
        guard entry.isOverdue else {
            consumer.finish(entry.messages)
            return
        }
        entry.isOverdue = false
        entry.attemptCount = 0
        held[key] = entry
        missed.append(
            Pending(
                input: Input(environment: key.environment, subject: key.subject, origin: .event, attemptCount: 0),
                partition: entry.partition))
    }

    // MARK: Calling

    private mutating func startCalls() {
        var started = 0
        while started < ready.count, inFlightCount < limits.inFlightMax {
            let next = ready[started]
            started += 1
            guard ContinuousClock.now < next.startBefore, let call = callers[next.key.environment] else {
                decideAgain(next.key)
                continue
            }
            inFlightCount += 1
            let (answers, wakeup) = (answers, consumer.wakeup)
            Task {
                let answer = await call(next.call)
                answers.append((next.key, answer))
                wakeup.signal()
            }
        }
        ready.removeFirst(started)
        inFlightGauge.record(inFlightCount)
    }

    /// It waited for its call for so long that its lease may be over.
    private mutating func decideAgain(_ key: Key) {
        guard let entry = held[key] else { return }
        if probes[key.environment] == key { breakers[key.environment]?.probeWasNotMade(now: .now) }
        pending.append(
            Pending(
                input: Input(
                    environment: key.environment, subject: key.subject, origin: .retry, attemptCount: entry.attemptCount
                ),
                partition: entry.partition))
    }

    // MARK: Waiting

    private mutating func pause() throws {
        try consumer.pauseAll()
        isPaused = true
    }

    private mutating func resume() throws {
        guard isPaused else { return }
        try consumer.resumeAll()
        isPaused = false
    }

    /// Backs off with jitter, and keeps polling meanwhile: the group must not notice.
    private mutating func waitAfterFailure() throws {
        failureCount += 1
        missed.forEach { item in
            let isPending = pending.contains {
                $0.input.subject == item.input.subject && $0.input.environment == item.input.environment
            }
            if !isPending { pending.append(item) }
        }
        missed = []
        if !isPaused { try? pause() }
        let grown = Duration.milliseconds(50) * (1 << min(failureCount, 6))
        consumer.wakeup.wait(atMost: grown * Double.random(in: 0.5...1))
        taken += try consumer.nextBatch(countMax: limits.batchCountMax, waitMax: .zero)
    }
}

/// What other threads have for a loop.
final class Inbox<Element: Sendable>: Sendable {
    private let elements = Mutex<[Element]>([])

    func append(_ element: Element) { elements.withLock { $0.append(element) } }

    func takeAll() -> [Element] {
        elements.withLock { elements in
            defer { elements = [] }
            return elements
        }
    }
}
