package import Essentials
import Kafka
package import Logging
import Metrics
import Model
import ObjectStore
import Postgres
package import ServiceRuntime
import Synchronization

/// A loop that owns a Kafka consumer and a PostgreSQL connection, and executes the actions of its scheduler with a
/// `Handler`.
///
/// Offsets are stored only below the lowest unfinished message. While PostgreSQL is unavailable, the same inputs are
/// retried without limit, and the consumer stays a member of its group.
package struct Worker<H: Handler>: ~Copyable {
    typealias Scheduler = WorkScheduler<Receipt, PreparedCall<H>>

    /// The call function of an environment.
    struct Caller {
        let make: @Sendable (H.Call) async -> H.CallResult
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
    /// Messages from Kafka that are not admitted yet; kept if PostgreSQL fails meanwhile.
    var fetchedMessages: [Message] = []
    var callers: [EnvironmentID: Caller] = [:]
    /// Reasons why environments cannot be called.
    var unavailable: [EnvironmentID: String] = [:]
    /// The assignment by which rate limits were divided, and the time of the next refresh.
    var rateLimitAssignment: Set<TopicPartition> = []
    var nextRateLimitRefresh = ContinuousClock.now
    var isPaused = false
    let metrics: WorkerMetrics

    package init(_ handler: H, at place: WorkerConfiguration, limits: WorkerLimits, logger: Logger) throws {
        var connection = try Connection(place.conninfo, limits: Limits(lockMax: Self.lockMax), check: Lineage.check)
        try Schema.check(on: &connection, oldest: max(H.schemaOldest, DeferredKeys.schemaOldest))
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

    /// Lock timeout of a worker's statements. After it the environment is treated as locked.
    static var lockMax: Duration { .milliseconds(250) }

    /// Wakes the loop before its wait is over.
    package var wakeup: Wakeup { consumer.wakeup }

    /// Runs until the process stops, and reports its health.
    package mutating func run(_ control: WorkerControl) throws {
        control.whenStopping(wakeup.signal)
        try run {
            control.isStopping
        } report: { problem in
            if let problem { control.impaired(problem) } else { control.progressed() }
        }
    }

    /// Runs cycles until it should stop and all started work is recorded. Work that cannot be recorded then is
    /// redelivered to the next worker: a stopping worker does not wait for PostgreSQL.
    ///
    /// - Parameter report: Called after every cycle with `nil`, or with the reason why the worker is not ready.
    mutating func run(isStopping: () -> Bool, report: (String?) -> Void) throws {
        while true {
            let isStopping = isStopping()
            if isStopping, schedule({ $0.isIdle || $0.hasOnlyLockedWork(now: .now) }) { return }
            report(try step(isStopping: isStopping))
            if isStopping, schedule({ $0.outage != nil }) { return }
        }
    }

    /// Runs one cycle: take messages, decide, commit, start calls. After a failed cycle, cycles only poll Kafka until
    /// the backoff is over, and then repeat it.
    ///
    /// - Parameter isStopping: Takes no new messages. Calls in flight are awaited and recorded; waiting calls are
    ///   withdrawn.
    /// - Returns: `nil`, or the reason why PostgreSQL or Kafka is unavailable.
    /// - Throws: An error that needs a new worker: a fatal Kafka error, or a mistake in the program's SQL.
    mutating func step(isStopping: Bool = false) throws -> String? {
        let assignment = consumer.assignment
        metrics.partitions.record(assignment.count)
        schedule { scheduler in
            if isStopping { scheduler.stop() }
            scheduler.assigned(assignment)
        }
        do {
            if let outage = schedule({ $0.currentOutage(now: .now) }) {
                try take(limits.batchCountMax, min(outage.until - .now, .seconds(1)), isPaused: true)
                return outage.reason
            }
            try refreshRateLimits()
            while let action = schedule({ $0.next(now: .now) }) { try perform(action) }
            metrics.inFlight.record(schedule(\.calls.inFlightCount))
            schedule { $0.succeeded() }
            return consumer.connectionProblem
        } catch let error as PostgresError where error.isRetriable {
            return failed(error.description)
        } catch let error as KafkaError where !error.isFatal {
            return failed(error.description, level: error.advice == nil ? .warning : .error)
        }
    }

    /// Accesses the scheduler, which calls that end also use concurrently.
    @discardableResult
    func schedule<Result: Sendable>(_ body: (inout sending Scheduler) -> Result) -> Result {
        calls.scheduler.withLock { body(&$0) }
    }

    private mutating func perform(_ action: WorkAction<Receipt, PreparedCall<H>>) throws {
        switch action {
        case .finish(let messages): consumer.finish(messages)
        case .start(let started): calls.start(started)
        case .log(let event): log(event)
        case .take(let countMax, let waitMax, let isPaused): try take(countMax, waitMax, isPaused: isPaused)
        case .takeDue(let request): try takeDue(request)
        case .decide(let items, let environment): try decide(items, in: environment)
        case .deferKeys(let deferrals, let environment):
            try connection.run(DeferredKeys.deferKeys(deferrals, group: group, environment: environment))
            metrics.deferred.increment(by: deferrals.count)
            schedule { $0.deferred(now: .now) }
        case .wait(let waitMax): wakeup.wait(atMost: waitMax)
        }
    }

    /// - Returns: `reason`.
    private mutating func failed(_ reason: String, level: Logger.Level = .warning) -> String {
        // Readiness reports it too. A single failure is no outage yet, unless the configuration causes it.
        let failureCount = schedule { $0.outage?.failureCount ?? 0 }
        if failureCount == 0 || failureCount == 1 && level == .warning {
            logger.log(
                level: failureCount == 0 && level == .warning ? .info : level, "worker cycle failed, retrying",
                metadata: ["reason": "\(reason)"])
        }
        schedule { $0.failed(reason, now: .now, random: .random(in: 0..<1)) }
        return reason
    }
}

/// Whether a new worker would fail with the same error until an operator acts: the database has another schema, or
/// librdkafka rejects its configuration. For `Component.worker`.
@Sendable package func isFinal(_ error: any Error) -> Bool {
    error is SchemaMismatch || (error as? KafkaError)?.isInvalidArgument == true
}
