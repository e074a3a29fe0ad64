import BackendConnections
import Essentials
import FoundationEssentials
import KeyedWorker
import Logging
import Model
import ObjectStore
import Postgres

/// Writes the due polls of each environment's tracker as objects: those of the environment, or of each person who is
/// notified with their own login. One scheduler of all instances is the leader, the others are standbys.
struct Scheduler: ~Copyable {
    /// The advisory lock of the leader.
    private static let lockKey: Int64 = 0x6669_656c_6464_6566

    /// A run to start.
    struct RunStart {
        let scope: DefectPoll.Scope
        let run: Int64
        /// The person whose own login reads the tracker; `nil`: the environment's account.
        var person: TrackerPerson?
    }

    var session: SchedulerSession
    private var directory = RealmDirectory()
    let comparisonInterval: Duration
    let staleMax: Duration
    let logger: Logger
    var own: [EnvironmentID: OwnLoginState] = [:]
    private let decoder = JSONDecoder()
    private let encoder = JSONEncoder()

    /// - Parameters:
    ///   - conninfo: Of a separate connection, whose session holds the leader's lock.
    ///   - comparisonInterval: Time between two comparisons.
    ///   - staleMax: An unfinished poll older than this is restarted.
    init(conninfo: String, comparisonInterval: Duration, staleMax: Duration, logger: Logger) throws {
        session = try SchedulerSession(
            conninfo, lockKey: Self.lockKey, schemaOldest: DefectHandler.schemaOldest, logger: logger)
        self.comparisonInterval = comparisonInterval
        self.staleMax = staleMax
        self.logger = logger
    }

    /// Returns the id of the poll of a scope. Each environment and each person has one for each scope.
    ///
    /// - Parameter person: Their e-mail address; `nil`: the environment's poll.
    static func pollID(of scope: DefectPoll.Scope, _ person: String? = nil) -> UUID {
        UUID(name: person.map { "\(scope.rawValue) \($0)" } ?? scope.rawValue, in: polls)
    }

    /// Never changes: the ids of stored polls are derived from it.
    private static let polls = UUID(
        uuid: (0x84, 0x1B, 0x37, 0xC0, 0x5E, 0x92, 0x4A, 0x6D, 0xB3, 0x08, 0xF1, 0x7A, 0x29, 0xD4, 0x63, 0x5C))

    /// Starts the due runs.
    ///
    /// - Returns: Whether this scheduler is the leader.
    mutating func step(now: Timestamp) throws -> Bool {
        guard try session.isActive() else { return false }
        let results = try session.connection.run([DefectTracker.intervals, DefectStore.runs])
        var lastRuns: [EnvironmentID: [DefectPoll.Scope: DefectScheduleRule.LastRun]] = [:]
        for (environment, scope, run, age) in try results[1].decode(
            EnvironmentID.self, String.self, Int64.self, Int64?.self)
        {
            guard let scope = DefectPoll.Scope(rawValue: scope) else { continue }
            lastRuns[environment, default: [:]][scope] = DefectScheduleRule.LastRun(
                run: run, age: age.map { .milliseconds($0) })
        }
        let trackers = try results[0].decode(EnvironmentID.self, Int32.self, Bool.self)
        removeOwnLoginStates(except: Set(trackers.lazy.filter { !$0.2 }.map(\.0)))
        for (environment, seconds, hasAccount) in trackers {
            let interval = Duration.seconds(Int64(seconds))
            guard hasAccount else {
                try isolatingErrors(of: environment) { scheduler in
                    try scheduler.stepOwnLogins(in: environment, interval: interval, now: now)
                }
                continue
            }
            let due = DefectScheduleRule.due(
                lastRuns[environment] ?? [:], interval: interval, comparisonInterval: comparisonInterval)
            if due.isEmpty { continue }
            try isolatingErrors(of: environment) { scheduler in
                for (scope, run) in due {
                    try scheduler.start([RunStart(scope: scope, run: run)], in: environment, now)
                }
            }
        }
        return true
    }

    private mutating func isolatingErrors(
        of environment: EnvironmentID, _ body: (inout Scheduler) throws -> Void
    ) throws {
        let logger = logger
        try SchedulerSession.alone(environment, &self, orLog: "cannot write the polls of a tracker", to: logger, body)
    }

    /// Writes the polls of runs. A run counts as started when its poll is written. If the poll of an earlier run is in
    /// progress, the run starts after it.
    mutating func start(_ starts: [RunStart], in environment: EnvironmentID, _ now: Timestamp) throws {
        guard let polls = try directory.id(of: .polls, in: environment, create: true, on: &session.connection) else {
            return
        }
        let due = starts.map { ($0, ObjectKey(realm: polls, kind: .defectPoll, id: Self.pollID(of: $0))) }
        let results = try session.connection.run([
            RealmObject.load(due.map(\.1), in: environment), DefectStore.finished(in: environment),
            OwnLoginStore.finished(starts.compactMap(\.person?.realm), in: environment),
        ])
        let objects = try RealmObject.byKey(results[0])
        let finished = try FinishedRuns(environments: results[1], people: results[2])
        var written: [SchedulerSession.Written] = []
        var started: [RunStart] = []
        for (start, key) in due {
            let object = objects[key]
            // A poll that does not decode is rewritten.
            if let stored = try? object?.decoded(as: DefectPoll.self, by: decoder) {
                let lastRun = PollRunState(run: stored.run, dueAt: stored.dueAt, finishedRun: finished[start])
                guard lastRun.isDue(for: start.run, now: now, staleMax: staleMax) else {
                    // It was written before a crash. Only the record of its start is missing.
                    if stored.run >= start.run {
                        started.append(RunStart(scope: start.scope, run: stored.run, person: start.person))
                    }
                    continue
                }
            }
            let poll = DefectPoll(run: start.run, scope: start.scope, person: start.person?.email, dueAt: now)
            written.append((key, object?.position ?? 0, try CanonicalJSON(encoding: poll, by: encoder)))
            started.append(start)
        }
        try session.write(written, in: environment)
        try recordStarts(started, in: environment)
    }

    /// Records the start of runs.
    private mutating func recordStarts(_ started: [RunStart], in environment: EnvironmentID) throws {
        for start in started where start.person == nil {
            try session.connection.run(DefectStore.recordStart(start.run, of: start.scope, in: environment))
            logger.debug(
                "run started",
                metadata: [
                    "environment": "\(environment)", "scope": "\(start.scope.rawValue)", "run": "\(start.run)",
                ])
        }
        let own = started.compactMap { start in start.person.map { ($0.realm, start.scope, start.run) } }
        if !own.isEmpty { try session.connection.run(OwnLoginStore.recordStarts(own, in: environment)) }
    }

    private static func pollID(of start: RunStart) -> UUID {
        pollID(of: start.scope, start.person?.email)
    }

    /// The last finished runs.
    private struct FinishedRuns {
        private let ofEnvironment: [DefectPoll.Scope: Int64]
        private var ofPeople: [Int32: [DefectPoll.Scope: Int64]] = [:]

        init(environments: Rows, people: Rows) throws {
            ofEnvironment = try DefectStore.finishedRuns(environments)
            for (realm, scope, run) in try people.decode(Int32.self, String.self, Int64.self) {
                if let scope = DefectPoll.Scope(rawValue: scope) { ofPeople[realm, default: [:]][scope] = run }
            }
        }

        subscript(_ start: RunStart) -> Int64 {
            guard let person = start.person else { return ofEnvironment[start.scope] ?? 0 }
            return ofPeople[person.realm]?[start.scope] ?? 0
        }
    }
}
