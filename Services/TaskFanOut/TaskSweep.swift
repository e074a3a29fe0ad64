import KeyedWorker
import Logging
import Model
import ObjectStore
import Postgres

/// Re-queues tasks that time alone changes: those whose due date has passed, and those whose copy or master is past its
/// retention. No event does.
struct TaskSweep: ~Copyable {
    /// Interval of the search for due tasks, and thus the delay of notices about them.
    private static let dueInterval = Duration.seconds(30)
    /// Limit on re-queued keys of an environment per step and kind of limit. The next step continues.
    private static let countMax = 1_000

    private var connection: Connection
    private let retention: TaskRetention
    /// Interval of the search for expired tasks.
    private let interval: Duration
    private var expiryAt = ContinuousClock.now
    private let logger: Logger

    init(conninfo: String, retention: TaskRetention, interval: Duration, logger: Logger) throws {
        var connection = try Connection(conninfo, check: Lineage.check)
        try Schema.check(on: &connection, oldest: TaskHandler.schemaOldest)
        self.connection = connection
        self.retention = retention
        self.interval = interval
        self.logger = logger
    }

    /// Checks all environments. Several processes may do so concurrently.
    ///
    /// - Returns: The delay until the next step.
    mutating func step() throws -> Duration {
        let dueCount = try requeue(of: TaskCascade.environmentsWithDueTasks, reason: "due") {
            TaskCascade.due(countMax: Self.countMax, in: $0)
        }
        if ContinuousClock.now >= expiryAt {
            let retention = retention
            let expiredCount = try requeue(of: EnvironmentCounter.all, reason: "expired") {
                TaskCascade.expired(retention, countMax: Self.countMax, in: $0)
            }
            expiryAt = .now + (expiredCount < Self.countMax ? interval : min(interval, .seconds(10)))
        }
        let untilExpiry = ContinuousClock.now.duration(to: expiryAt)
        return dueCount < Self.countMax ? min(Self.dueInterval, untilExpiry) : .seconds(1)
    }

    /// Re-queues the tasks of each environment.
    ///
    /// - Parameter environments: Selects the environments.
    /// - Returns: The greatest number of an environment.
    private mutating func requeue(
        of environments: Statement, reason: String, _ tasks: (EnvironmentID) -> Statement
    ) throws -> Int {
        var countMax = 0
        for environment in try connection.run(environments).decode(EnvironmentID.self) {
            let count = Int(try connection.run(tasks(environment)).affectedCount)
            if count > 0 {
                logger.info(
                    "re-queued tasks",
                    metadata: ["environment": "\(environment)", "reason": "\(reason)", "count": "\(count)"])
            }
            countMax = max(countMax, count)
        }
        return countMax
    }
}
