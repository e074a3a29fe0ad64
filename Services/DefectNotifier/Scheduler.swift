import Environments
import Essentials
import FoundationEssentials
import Logging
import Model
import NameBasedIDs
import Postgres
import Realms
import Work

/// Writes the polls of each environment's tracker as objects, when they are due. One is active among all instances,
/// others are ready.
struct Scheduler: ~Copyable {
    /// One session holds it: the active scheduler.
    private static let lockKey: Int64 = 0x6669_656c_6464_6566

    private var session: SchedulerSession
    private var directory = RealmDirectory()
    private let comparisonInterval: Duration
    private let staleMax: Duration
    private let logger: Logger
    private let decoder = JSONDecoder()
    private let encoder = JSONEncoder()

    /// - Parameters:
    ///   - conninfo: It has a connection of its own: its session holds the lock of the active scheduler.
    ///   - comparisonInterval: Between two readings of all defects.
    ///   - staleMax: A poll that is not done after so long is begun anew.
    init(conninfo: String, comparisonInterval: Duration, staleMax: Duration, logger: Logger) throws {
        session = try SchedulerSession(
            conninfo, lockKey: Self.lockKey, schemaOldest: DefectHandler.schemaOldest, logger: logger)
        self.comparisonInterval = comparisonInterval
        self.staleMax = staleMax
        self.logger = logger
    }

    /// The id of an environment's poll of a scope: there is one of each.
    static func pollID(of scope: DefectPoll.Scope) -> UUID { UUID(name: scope.rawValue, in: polls) }

    /// It is never changed.
    private static let polls = UUID(
        uuid: (0x84, 0x1B, 0x37, 0xC0, 0x5E, 0x92, 0x4A, 0x6D, 0xB3, 0x08, 0xF1, 0x7A, 0x29, 0xD4, 0x63, 0x5C))

    /// Begins the runs that are due.
    ///
    /// - Returns: Whether this scheduler is the active one.
    mutating func step(now: Timestamp) throws -> Bool {
        guard try session.isActive() else { return false }
        let answers = try session.connection.run([DefectTracker.intervals, DefectStore.runs])
        var begun: [EnvironmentID: [DefectPoll.Scope: DefectScheduleRule.Begun]] = [:]
        for (environment, scope, run, age) in try answers[1].decode(
            EnvironmentID.self, String.self, Int64.self, Int64?.self)
        {
            guard let scope = DefectPoll.Scope(rawValue: scope) else { continue }
            begun[environment, default: [:]][scope] = DefectScheduleRule.Begun(
                run: run, age: age.map { .milliseconds($0) })
        }
        let logger = logger
        for (environment, seconds) in try answers[0].decode(EnvironmentID.self, Int32.self) {
            let due = DefectScheduleRule.due(
                begun[environment] ?? [:], interval: .seconds(Int64(seconds)), comparisonInterval: comparisonInterval)
            if due.isEmpty { continue }
            try SchedulerSession.alone(
                environment, &self, orLog: "the polls of an environment's tracker cannot be written", to: logger
            ) { scheduler in
                for (scope, run) in due { try scheduler.begin(run, of: scope, in: environment, now) }
            }
        }
        return true
    }

    /// The run counts as begun when its poll is written. One whose poll is under way still is begun when that is done.
    private mutating func begin(
        _ run: Int64, of scope: DefectPoll.Scope, in environment: EnvironmentID, _ now: Timestamp
    ) throws {
        guard let polls = try directory.id(of: .polls, in: environment, create: true, on: &session.connection) else {
            return
        }
        let key = ObjectKey(realm: polls, kind: .defectPoll, id: Self.pollID(of: scope))
        let answers = try session.connection.run([
            RealmObject.load([key], in: environment), DefectStore.finished(in: environment),
        ])
        let object = try RealmObject.byKey(answers[0])[key]
        let finishedRun = try DefectStore.finishedRuns(answers[1])[scope] ?? 0
        // One that does not decode is written anew.
        if let stored = try? object?.decoded(as: DefectPoll.self, by: decoder) {
            let known = KnownRun(run: stored.run, dueAt: stored.dueAt, finishedRun: finishedRun)
            guard known.isDue(for: run, now: now, staleMax: staleMax) else {
                // It was written before a crash: what is left to be done is to say so.
                if stored.run >= run {
                    try session.connection.run(DefectStore.begun(stored.run, of: scope, in: environment))
                }
                return
            }
        }
        let poll = DefectPoll(run: run, scope: scope, dueAt: now)
        try session.write(
            [(key, object?.position ?? 0, try CanonicalJSON(encoding: poll, by: encoder))], in: environment)
        try session.connection.run(DefectStore.begun(run, of: scope, in: environment))
        logger.debug(
            "a run has begun",
            metadata: ["environment": "\(environment)", "scope": "\(scope.rawValue)", "run": "\(run)"])
    }
}
