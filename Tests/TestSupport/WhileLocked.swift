package import Model
package import Postgres

extension Limits {
    /// For a session that keeps a transaction open while a test waits for others.
    package static var openTransaction: Limits {
        var limits = Limits()
        limits.idleInTransactionMax = patienceMax * 2
        return limits
    }
}

/// Runs `body` while a session holds the lock of an environment's counter, like one that hangs in its transaction.
package func whileLocked<Success>(
    _ environments: EnvironmentID..., at conninfo: String, _ body: () throws -> Success
) throws -> Success {
    var holder = try Connection(conninfo, limits: .openTransaction)
    return try holder.transaction { transaction in
        for environment in environments {
            try transaction.run("UPDATE realm.environment SET position = position WHERE id = \(environment.rawValue)")
        }
        return try body()
    }
}
