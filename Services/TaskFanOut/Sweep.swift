import Logging
import Model
import ObjectStore
import Postgres

/// Has the tasks be decided anew that were completed long ago: nothing happens to them that would.
struct Sweep: ~Copyable {
    /// The most keys of an environment that one step has come back, of each sort; the next step goes on.
    private static let countMax = 1_000

    private var connection: Connection
    private let keep: KeepLimits
    private let interval: Duration
    private let logger: Logger

    init(conninfo: String, keep: KeepLimits, interval: Duration, logger: Logger) throws {
        var connection = try Connection(conninfo, check: Lineage.check)
        try Schema.check(on: &connection, oldest: TaskHandler.schemaOldest)
        self.connection = connection
        self.keep = keep
        self.interval = interval
        self.logger = logger
    }

    /// Looks through all environments. Several processes may do it at a time.
    ///
    /// - Returns: How long to wait until the next time.
    mutating func step() throws -> Duration {
        var foundCount = 0
        for environment in try connection.run(EnvironmentCounter.all).decode(EnvironmentID.self) {
            let count = Int(
                try connection.run(TaskCascade.old(keep, countMax: Self.countMax, in: environment)).affectedCount)
            if count > 0 {
                logger.info(
                    "tasks completed long ago go out of the way",
                    metadata: ["environment": "\(environment)", "count": "\(count)"])
            }
            foundCount = max(foundCount, count)
        }
        return foundCount < Self.countMax ? interval : min(interval, .seconds(10))
    }
}
