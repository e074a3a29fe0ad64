import Logging
import Model
import ObjectStore
import Postgres

/// Re-queues tasks whose due date has passed, so that people are notified: no event does.
struct OverdueSweep: ~Copyable {
    /// Delay between two steps, and thus the delay of a notice.
    private static let interval = Duration.seconds(30)
    /// Limit on re-queued keys of an environment per step. The next step continues soon.
    private static let countMax = 1_000

    private var connection: Connection
    private let logger: Logger

    init(conninfo: String, logger: Logger) throws {
        var connection = try Connection(conninfo, check: Lineage.check)
        try Schema.check(on: &connection, oldest: TaskHandler.schemaOldest)
        self.connection = connection
        self.logger = logger
    }

    /// Checks all environments. Several processes may do so concurrently.
    ///
    /// - Returns: The delay until the next step.
    mutating func step() throws -> Duration {
        var requeuedCount = 0
        for environment in try connection.run(TaskCascade.environmentsWithDueTasks).decode(EnvironmentID.self) {
            let count = Int(
                try connection.run(TaskCascade.due(countMax: Self.countMax, in: environment)).affectedCount)
            if count > 0 {
                logger.debug("re-queued due tasks", metadata: ["environment": "\(environment)", "count": "\(count)"])
            }
            requeuedCount = max(requeuedCount, count)
        }
        return requeuedCount < Self.countMax ? Self.interval : .seconds(1)
    }
}
