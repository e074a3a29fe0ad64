import KeyedWorker
import Logging
import Model
import ObjectStore
import Postgres

/// Re-queues tasks whose copy or master is past its retention: no event does.
struct TaskSweep: ~Copyable {
    /// Limit on re-queued keys of an environment per step and kind of limit. The next step continues.
    private static let countMax = 1_000

    private var connection: Connection
    private let retention: TaskRetention
    private let interval: Duration
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
        var requeuedCount = 0
        for environment in try connection.run(EnvironmentCounter.all).decode(EnvironmentID.self) {
            let count = Int(
                try connection.run(TaskCascade.expired(retention, countMax: Self.countMax, in: environment))
                    .affectedCount)
            if count > 0 {
                logger.info(
                    "re-queued expired tasks", metadata: ["environment": "\(environment)", "count": "\(count)"])
            }
            requeuedCount = max(requeuedCount, count)
        }
        return requeuedCount < Self.countMax ? interval : min(interval, .seconds(10))
    }
}
