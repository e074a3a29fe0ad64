package import Logging
import Metrics
package import Model
package import ObjectStore
package import Postgres

/// A session of a scheduler, which periodically writes the objects that make workers poll a back end. Of all instances
/// one is the leader. Failures in one environment do not delay others, and objects are written in batches.
package struct SchedulerSession: ~Copyable {
    /// An object to write, with its expected position; 0 if it must not exist.
    package typealias Written = (key: ObjectKey, position: Int64, fields: CanonicalJSON)

    /// Maximum number of objects per transaction.
    package static var batchCountMax: Int { 500 }

    /// The session that holds the leader's lock.
    package var connection: Connection
    private let lockKey: Int64
    private let logger: Logger
    private var lockedOpenCount = -1
    private let leader: Gauge

    /// - Parameters:
    ///   - conninfo: Connection string for the scheduler's own session, which holds the leader's lock.
    ///   - lockKey: Key of the leader's advisory lock.
    ///   - schemaOldest: The oldest supported version of the database schema.
    package init(
        _ conninfo: String, lockKey: Int64, schemaOldest: Int32 = Schema.oldest, logger: Logger
    ) throws {
        // An instance that cannot connect is not the leader any more.
        let leader = Gauge(label: "fieldpost.leader")
        leader.record(0)
        // An environment that is locked is retried at the next step, so that others are not delayed.
        var limits = Limits.lockHolder
        limits.lockMax = .seconds(1)
        var connection = try Connection(conninfo, limits: limits, check: Lineage.check)
        try Schema.check(on: &connection, oldest: schemaOldest)
        self.connection = connection
        self.lockKey = lockKey
        self.logger = logger
        self.leader = leader
    }

    /// Whether this scheduler is the leader. Its session holds an advisory lock, which ends with the connection.
    package mutating func isActive() throws -> Bool {
        if lockedOpenCount == connection.openCount { return true }
        leader.record(0)
        guard try connection.run("SELECT pg_try_advisory_lock(\(lockKey))")[0].decode(Bool.self) else { return false }
        lockedOpenCount = connection.openCount
        leader.record(1)
        logger.notice("scheduler became the leader")
        return true
    }

    /// Writes objects in batches. Objects with a version conflict are left to the next run.
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

    /// Runs `body` for one environment. A failure is logged and retried at the next step; other environments are not
    /// affected. A lock of another transaction is no error: workers report it if it lasts.
    ///
    /// - Parameter problem: The log message of a failure.
    package static func alone<Scheduler: ~Copyable>(
        _ environment: EnvironmentID, _ scheduler: inout Scheduler, orLog problem: Logger.Message, to logger: Logger,
        _ body: (inout Scheduler) throws -> Void
    ) throws {
        do {
            try body(&scheduler)
        } catch let error as PostgresError where !error.isConnectionLost {
            logger.log(
                level: error.isLocked ? .info : .error, problem,
                metadata: ["environment": "\(environment)", "error": "\(error)"])
        }
    }
}
