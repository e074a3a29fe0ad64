import BackendConnections
import Essentials
import FoundationEssentials
import KeyedWorker
import Logging
import Model
import ObjectStore
import Postgres

/// Writes the polls of each environment's tracker as objects, when they are due: those of the environment, or of each
/// person who is told by their own login. One is active among all instances, others are ready.
struct Scheduler: ~Copyable {
    /// One session holds it: the active scheduler.
    private static let lockKey: Int64 = 0x6669_656c_6464_6566

    /// A run that is to be begun.
    struct Beginning {
        let scope: DefectPoll.Scope
        let run: Int64
        /// Whose own login it is read with.
        var person: KnownPeople.Person?
    }

    var session: SchedulerSession
    private var directory = RealmDirectory()
    let comparisonInterval: Duration
    let staleMax: Duration
    let logger: Logger
    var own: [EnvironmentID: OwnBeat] = [:]
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

    /// The id of a poll of a scope: there is one of each, of the environment or of a person.
    ///
    /// - Parameter person: Their e-mail address; `nil`: it is the environment's.
    static func pollID(of scope: DefectPoll.Scope, _ person: String? = nil) -> UUID {
        UUID(name: person.map { "\(scope.rawValue) \($0)" } ?? scope.rawValue, in: polls)
    }

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
        let trackers = try answers[0].decode(EnvironmentID.self, Int32.self, Bool.self)
        forgetOwn(but: Set(trackers.lazy.filter { !$0.2 }.map(\.0)))
        for (environment, seconds, hasAccount) in trackers {
            let interval = Duration.seconds(Int64(seconds))
            guard hasAccount else {
                try alone(environment) { scheduler in
                    try scheduler.stepOwn(in: environment, interval: interval, now: now)
                }
                continue
            }
            let due = DefectScheduleRule.due(
                begun[environment] ?? [:], interval: interval, comparisonInterval: comparisonInterval)
            if due.isEmpty { continue }
            try alone(environment) { scheduler in
                for (scope, run) in due {
                    try scheduler.begin([Beginning(scope: scope, run: run)], in: environment, now)
                }
            }
        }
        return true
    }

    private mutating func alone(
        _ environment: EnvironmentID, _ body: (inout Scheduler) throws -> Void
    ) throws {
        let logger = logger
        try SchedulerSession.alone(
            environment, &self, orLog: "the polls of an environment's tracker cannot be written", to: logger, body)
    }

    /// A run counts as begun when its poll is written. One whose poll is under way still is begun when that is done.
    mutating func begin(_ beginnings: [Beginning], in environment: EnvironmentID, _ now: Timestamp) throws {
        guard let polls = try directory.id(of: .polls, in: environment, create: true, on: &session.connection) else {
            return
        }
        let due = beginnings.map { ($0, ObjectKey(realm: polls, kind: .defectPoll, id: Self.pollID(of: $0))) }
        let answers = try session.connection.run([
            RealmObject.load(due.map(\.1), in: environment), DefectStore.finished(in: environment),
            OwnStore.finished(beginnings.compactMap(\.person?.realm), in: environment),
        ])
        let objects = try RealmObject.byKey(answers[0])
        let finished = try FinishedRuns(environments: answers[1], people: answers[2])
        var written: [SchedulerSession.Written] = []
        var begun: [Beginning] = []
        for (beginning, key) in due {
            let object = objects[key]
            // One that does not decode is written anew.
            if let stored = try? object?.decoded(as: DefectPoll.self, by: decoder) {
                let known = KnownRun(run: stored.run, dueAt: stored.dueAt, finishedRun: finished[beginning])
                guard known.isDue(for: beginning.run, now: now, staleMax: staleMax) else {
                    // It was written before a crash: what is left to be done is to say so.
                    if stored.run >= beginning.run {
                        begun.append(Beginning(scope: beginning.scope, run: stored.run, person: beginning.person))
                    }
                    continue
                }
            }
            let poll = DefectPoll(
                run: beginning.run, scope: beginning.scope, person: beginning.person?.email, dueAt: now)
            written.append((key, object?.position ?? 0, try CanonicalJSON(encoding: poll, by: encoder)))
            begun.append(beginning)
        }
        try session.write(written, in: environment)
        try say(begun, in: environment)
    }

    /// Says that runs are begun.
    private mutating func say(_ begun: [Beginning], in environment: EnvironmentID) throws {
        for beginning in begun where beginning.person == nil {
            try session.connection.run(DefectStore.begun(beginning.run, of: beginning.scope, in: environment))
            logger.debug(
                "a run has begun",
                metadata: [
                    "environment": "\(environment)", "scope": "\(beginning.scope.rawValue)", "run": "\(beginning.run)",
                ])
        }
        let own = begun.compactMap { begun in begun.person.map { ($0.realm, begun.scope, begun.run) } }
        if !own.isEmpty { try session.connection.run(OwnStore.begun(own, in: environment)) }
    }

    private static func pollID(of beginning: Beginning) -> UUID {
        pollID(of: beginning.scope, beginning.person?.email)
    }

    /// The last runs whose findings are written.
    private struct FinishedRuns {
        private let ofEnvironment: [DefectPoll.Scope: Int64]
        private var ofPeople: [Int32: [DefectPoll.Scope: Int64]] = [:]

        init(environments: Rows, people: Rows) throws {
            ofEnvironment = try DefectStore.finishedRuns(environments)
            for (realm, scope, run) in try people.decode(Int32.self, String.self, Int64.self) {
                if let scope = DefectPoll.Scope(rawValue: scope) { ofPeople[realm, default: [:]][scope] = run }
            }
        }

        subscript(_ beginning: Beginning) -> Int64 {
            guard let person = beginning.person else { return ofEnvironment[beginning.scope] ?? 0 }
            return ofPeople[person.realm]?[beginning.scope] ?? 0
        }
    }
}
