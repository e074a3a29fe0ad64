package import Logging
package import Model
package import ObjectStore
package import Postgres

/// What schedulers have in common, which write the objects that make workers read something, run after run: one of them
/// is active among all instances, what goes wrong in one environment does not hold up the others, and objects are
/// written in batches.
package struct SchedulerSession: ~Copyable {
    /// An object to be written, and where it was when that was decided; 0: it was not there.
    package typealias Written = (key: ObjectKey, position: Int64, fields: CanonicalJSON)

    /// Objects written in one transaction.
    package static var batchCountMax: Int { 500 }

    /// Its session holds the lock of the active scheduler.
    package var connection: Connection
    private let lockKey: Int64
    private let logger: Logger
    private var lockedOpenCount = -1

    /// - Parameters:
    ///   - conninfo: It has a connection of its own: its session holds the lock of the active scheduler.
    ///   - lockKey: The advisory lock that one session holds.
    ///   - schemaOldest: The oldest version of the database's schema that will do.
    package init(
        _ conninfo: String, lockKey: Int64, schemaOldest: Int32 = Schema.oldest, logger: Logger
    ) throws {
        // Environments take turns: one in which somebody holds a lock comes again at the next step.
        var limits = Limits.ofLockHolder
        limits.lockMax = .seconds(1)
        var connection = try Connection(conninfo, limits: limits, check: Lineage.check)
        try Schema.check(on: &connection, oldest: schemaOldest)
        self.connection = connection
        self.lockKey = lockKey
        self.logger = logger
    }

    /// Whether this scheduler is the active one. One session holds an advisory lock; it is gone with the connection.
    package mutating func isActive() throws -> Bool {
        if lockedOpenCount == connection.openCount { return true }
        guard try connection.run("SELECT pg_try_advisory_lock(\(lockKey))")[0].decode(Bool.self) else { return false }
        lockedOpenCount = connection.openCount
        logger.notice("this scheduler is the active one")
        return true
    }

    /// Writes objects, some of them in a transaction. One that was changed meanwhile is left to the next run.
    package mutating func write(_ objects: [Written], in environment: EnvironmentID) throws {
        var rest = objects[...]
        while !rest.isEmpty {
            var batch = WriteBatch(environment: environment)
            for (decision, object) in rest.prefix(Self.batchCountMax).enumerated() {
                batch.expect(object.key, at: object.position, decision: decision)
                batch.put(object.key, object.fields, decision: decision)
            }
            _ = try batch.commit(on: &connection)
            rest = rest.dropFirst(Self.batchCountMax)
        }
    }

    /// Does something for one environment. What goes wrong in it is logged, and tried again at the next step: the
    /// others go on.
    ///
    /// - Parameter problem: What is logged then.
    package static func alone<Scheduler: ~Copyable>(
        _ environment: EnvironmentID, _ scheduler: inout Scheduler, orLog problem: Logger.Message, to logger: Logger,
        _ body: (inout Scheduler) throws -> Void
    ) throws {
        do {
            try body(&scheduler)
        } catch let error as PostgresError where !error.isConnectionLost {
            logger.error(problem, metadata: ["environment": "\(environment)", "error": "\(error)"])
        }
    }
}
