package import Model
import Postgres

/// Runs `body` while a session holds the lock of an environment's counter, like one that hangs in its transaction.
package func whileLocked<Success>(
    _ environments: EnvironmentID..., at conninfo: String, _ body: () throws -> Success
) throws -> Success {
    var limits = Limits()
    limits.idleInTransactionMax = .seconds(600)
    var holder = try Connection(conninfo, limits: limits)
    return try holder.transaction { transaction in
        for environment in environments {
            try transaction.run("UPDATE realm.environment SET position = position WHERE id = \(environment.rawValue)")
        }
        return try body()
    }
}
