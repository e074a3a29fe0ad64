import BackendConnections
import BackendProtocol
import Catalogues
import Essentials
import FoundationEssentials
import KeyedWorker
import Logging
import Model
import ObjectStore
import Postgres

/// Writes the polls of each environment's next run as objects. One is active among all instances, others are ready.
struct Scheduler: ~Copyable {
    /// One session holds it: the active scheduler.
    private static let lockKey: Int64 = 0x6669_656c_6470_6f6c

    private var session: SchedulerSession
    private var directory = RealmDirectory()
    private let fetcher: RealmFetcher
    private let staleMax: Duration
    private let logger: Logger
    private let decoder = JSONDecoder()
    private let encoder = JSONEncoder()
    private var audiences: CatalogueReconciler

    /// - Parameters:
    ///   - conninfo: It has a connection of its own: its session holds the lock of the active scheduler.
    ///   - fetcher: Knows which back ends tell what has changed.
    init(conninfo: String, fetcher: RealmFetcher, staleMax: Duration, logger: Logger) throws {
        session = try SchedulerSession(conninfo, lockKey: Self.lockKey, logger: logger)
        self.fetcher = fetcher
        self.staleMax = staleMax
        self.logger = logger
        audiences = CatalogueReconciler(logger: logger)
    }

    /// Begins the runs that are due, and settles catalogues after those that are done.
    ///
    /// - Returns: Whether this scheduler is the active one.
    mutating func step(now: Timestamp) throws -> Bool {
        guard try session.isActive() else { return false }
        let due = try session.connection.run(PollStore.due).decode(
            EnvironmentID.self, Int64.self, Bool.self, Int64?.self)
        let isDue = Set(due.map(\.0))
        let unsettled = try session.connection.run(PollStore.unsettled).decode(
            EnvironmentID.self, Int64.self, Timestamp.self)
        for (environment, run, since) in unsettled {
            try alone(environment) { scheduler in
                try scheduler.settle(
                    after: run, since: since, in: environment, whoeverIsMissing: isDue.contains(environment))
            }
        }
        for (environment, run, isFullDue, fullAgeSeconds) in due {
            let fullAge = fullAgeSeconds.map { Duration.seconds($0) }
            try alone(environment) { scheduler in
                try scheduler.begin(run, isFullDue: isFullDue, fullAge: fullAge, in: environment, now)
            }
        }
        return true
    }

    /// The others go on whatever goes wrong in one environment.
    private mutating func alone(
        _ environment: EnvironmentID, _ body: (inout Scheduler) throws -> Void
    ) throws {
        let logger = logger
        try SchedulerSession.alone(
            environment, &self, orLog: "an environment's polls, or its catalogues, cannot be brought forward",
            to: logger, body)
    }

    /// When everybody was read, or nobody is waited for any longer: who was not counts as before.
    private mutating func settle(
        after run: Int64, since: Timestamp, in environment: EnvironmentID, whoeverIsMissing: Bool
    ) throws {
        guard let polls = try directory.id(of: .polls, in: environment, create: false, on: &session.connection) else {
            return
        }
        if !whoeverIsMissing {
            let answer = try session.connection.run(PollStore.isUnderWay(polls: polls, in: environment))
            if try answer[0].decode(Bool.self) { return }
        }
        guard try audiences.settle(environment, since: since, on: &session.connection) else { return }
        try audiences.forgetTrees(environment, on: &session.connection)
        try session.connection.run(PollStore.settled(run, in: environment))
    }

    /// One whose adapter cannot be made is polled in full: what is wrong with it is said where it would be called.
    private mutating func capabilities(of environment: EnvironmentID) throws -> BackendCapabilities? {
        do {
            return try fetcher.adapters.adapter(of: environment, on: &session.connection).capabilities
        } catch is MissingBackend {
            return nil
        }
    }

    /// The run counts as begun when all of it is written: after a crash the rest follows.
    private mutating func begin(
        _ run: Int64, isFullDue: Bool, fullAge: Duration?, in environment: EnvironmentID, _ now: Timestamp
    ) throws {
        let realms = try directory.ids(of: [.users, .polls], in: environment, create: true, on: &session.connection)
        guard let users = realms[.users], let polls = realms[.polls] else { return }
        let people = try session.connection.run(BackendPeople.initialized(users: users, in: environment)).decode(
            String.self)
        let beat = ScheduleRule.Beat(
            try capabilities(of: environment), peopleCount: people.count, isFullDue: isFullDue, fullAge: fullAge)
        if beat.isFull { try session.connection.run(PollStore.beginFull(in: environment)) }
        let answers = try session.connection.run([
            RealmObject.load(kinds: [.poll], realm: polls, in: environment), PollStore.finished(in: environment),
        ])
        let objects = try RealmObject.byKey(answers[0])
        let finished = try PollStore.runs(answers[1])
        var known: [String: ScheduleRule.Known] = [:]
        for (key, object) in objects {
            // One that does not decode is written anew.
            guard let poll = try? object.decoded(as: Poll.self, by: decoder) else { continue }
            known[poll.person] = ScheduleRule.Known(
                run: poll.run, dueAt: poll.dueAt, finishedRun: finished[key.id] ?? 0)
        }
        let polled = ScheduleRule.polls(of: people, known: known, beat: beat)
        let due = ScheduleRule.due(polled, known: known, run: run, now: now, staleMax: staleMax)
        let written = try due.map { person in
            let key = ObjectKey(realm: polls, kind: .poll, id: RealmContents.pollID(of: person))
            let poll = Poll(run: run, person: person, dueAt: now)
            return (key, objects[key]?.position ?? 0, try CanonicalJSON(encoding: poll, by: encoder))
        }
        try session.write(written, in: environment)
        try session.connection.run(PollStore.begun(run, isFull: beat.isFull, in: environment))
        logger.debug(
            "a run has begun",
            metadata: ["environment": "\(environment)", "run": "\(run)", "polls": "\(due.count)"])
    }
}
