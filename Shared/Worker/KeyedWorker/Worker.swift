package import Kafka
package import Logging
import Metrics
import Model
import ObjectStore
import Postgres
package import ServiceRuntime
import Synchronization

/// One loop that owns a Kafka consumer and a PostgreSQL connection and does what its scheduler says, with a `Handler`
/// that decides.
///
/// Offsets are stored below the lowest unfinished message only. When PostgreSQL is away the same inputs are decided
/// again, for ever, and the consumer keeps its place in the group.
package struct Worker<H: Handler>: ~Copyable {
    typealias Scheduler = WorkScheduler<Receipt, PreparedCall<H>>

    /// How an environment's calls are made.
    struct Caller {
        let make: @Sendable (H.Call) async -> H.Answer
        let madeAt: ContinuousClock.Instant
        let revision: Int64
    }

    let group: String
    let limits: WorkerLimits
    let logger: Logger
    var handler: H
    var consumer: Consumer
    var connection: Connection
    var reader: EventReader
    let calls: CallRunner<H>
    /// Messages from Kafka that were not looked at yet: kept when PostgreSQL fails on the way.
    var taken: [Message] = []
    var callers: [EnvironmentID: Caller] = [:]
    /// Why an environment's calls cannot be made.
    var unavailable: [EnvironmentID: String] = [:]
    /// The partitions by which the rates were shared out, and when they are set anew.
    var ratedAssignment: Set<TopicPartition> = []
    var nextRates = ContinuousClock.now
    var isPaused = false
    let metrics: WorkerMetrics

    package init(_ handler: H, at place: WorkerPlace, limits: WorkerLimits, logger: Logger) throws {
        var connection = try Connection(place.conninfo, limits: Limits(lockMax: Self.lockMax), check: Lineage.check)
        try Schema.check(on: &connection, oldest: max(H.schemaOldest, ParkedKeys.schemaOldest))
        let consumer = try Consumer(
            brokers: place.brokers, group: place.group, topics: place.topics, properties: place.properties)
        calls = CallRunner(Scheduler(limits, now: .now), wakeup: consumer.wakeup)
        group = place.group
        self.handler = handler
        self.limits = limits
        self.logger = logger
        self.consumer = consumer
        self.connection = connection
        reader = EventReader(group: place.group, logger: logger)
        metrics = WorkerMetrics(group: place.group, worker: place.index)
    }

    /// How long a statement of a worker waits for a lock. Then its environment is set aside.
    static var lockMax: Duration { .milliseconds(250) }

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
            if isStopping, schedule({ $0.isIdle || $0.isOnlySetAsideLeft(now: .now) }) { return }
            report(try step(isStopping: isStopping))
            if isStopping, schedule({ $0.away != nil }) { return }
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
        let assignment = consumer.assignment
        metrics.partitions.record(assignment.count)
        schedule { scheduler in
            if isStopping { scheduler.stop() }
            scheduler.assigned(assignment)
        }
        do {
            if let away = schedule({ $0.waiting(now: .now) }) {
                try take(limits.batchCountMax, min(away.until - .now, .seconds(1)), isPaused: true)
                return away.reason
            }
            try renewRates()
            while let action = schedule({ $0.next(now: .now) }) { try perform(action) }
            metrics.inFlight.record(schedule(\.calls.underWayCount))
            schedule { $0.succeeded() }
            return consumer.connectionProblem
        } catch let error as PostgresError where error.isRetriable {
            return failed(error.description)
        } catch let error as KafkaError where !error.isFatal {
            return failed(error.description, level: error.advice == nil ? .warning : .error)
        }
    }

    /// Asks or tells the scheduler something. Calls that end do so too, beside the worker.
    @discardableResult
    func schedule<Result: Sendable>(_ body: (inout sending Scheduler) -> Result) -> Result {
        calls.scheduler.withLock { body(&$0) }
    }

    private mutating func perform(_ action: WorkAction<Receipt, PreparedCall<H>>) throws {
        switch action {
        case .finish(let messages): consumer.finish(messages)
        case .start(let started): calls.start(started)
        case .note(let note): log(note)
        case .take(let countMax, let waitMax, let isPaused): try take(countMax, waitMax, isPaused: isPaused)
        case .takeDue(let request): try takeDue(request)
        case .decide(let items, let environment): try decide(items, in: environment)
        case .park(let parkings, let environment):
            try connection.run(ParkedKeys.park(parkings, group: group, environment: environment))
            metrics.parked.increment(by: parkings.count)
            schedule { $0.parked(now: .now) }
        case .wait(let waitMax):
            wakeup.wait(atMost: waitMax)
            wakeup.drain()
        }
    }

    /// - Returns: `reason`.
    private mutating func failed(_ reason: String, level: Logger.Level = .warning) -> String {
        // Once: readiness tells it as long as it lasts.
        if schedule({ $0.away == nil }) {
            logger.log(level: level, "cannot go on, trying again", metadata: ["reason": "\(reason)"])
        }
        schedule { $0.failed(reason, now: .now, random: .random(in: 0..<1)) }
        return reason
    }
}

/// Whether a worker that failed like that would do so again, until a person has acted: the database's schema is not
/// the program's, or librdkafka refuses its configuration. For `Component.worker`.
@Sendable package func isFinal(_ error: any Error) -> Bool {
    error is SchemaMismatch || (error as? KafkaError)?.isInvalidArgument == true
}
