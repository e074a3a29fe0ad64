import BackendProtocol
import Catalogues
import Environments
import Essentials
import FoundationEssentials
import Logging
import Model
import Postgres
import Realms

/// Writes the polls of each environment's next run as objects. One is active among all instances, others are ready.
struct Scheduler: ~Copyable {
    /// Polls written in one transaction.
    static let batchCountMax = 500

    private var connection: Connection
    private var directory = RealmDirectory()
    private let fetcher: RealmFetcher
    private let staleMax: Duration
    private let logger: Logger
    private let decoder = JSONDecoder()
    private let encoder = JSONEncoder()
    private var lockedOpenCount = -1
    private var audiences: CatalogueReconciler

    /// - Parameters:
    ///   - conninfo: It has a connection of its own: its session holds the lock of the active scheduler.
    ///   - fetcher: Knows which back ends tell what has changed.
    init(conninfo: String, fetcher: RealmFetcher, staleMax: Duration, logger: Logger) throws {
        // Environments take turns: one in which somebody holds a lock comes again at the next step.
        var limits = Limits.ofLockHolder
        limits.lockMax = .seconds(1)
        var connection = try Connection(conninfo, limits: limits, check: Lineage.check)
        try Schema.check(on: &connection)
        self.connection = connection
        self.fetcher = fetcher
        self.staleMax = staleMax
        self.logger = logger
        audiences = CatalogueReconciler(logger: logger)
    }

    /// Begins the runs that are due, and settles catalogues after those that are done.
    ///
    /// - Returns: Whether this scheduler is the active one.
    mutating func step(now: Timestamp) throws -> Bool {
        guard try isActive() else { return false }
        let due = try connection.run(PollStore.due).decode(EnvironmentID.self, Int64.self, Bool.self, Int64?.self)
        let isDue = Set(due.map(\.0))
        let unsettled = try connection.run(PollStore.unsettled).decode(EnvironmentID.self, Int64.self, Timestamp.self)
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

    /// What goes wrong in one environment is logged, and tried again at the next step: the others go on.
    private mutating func alone(
        _ environment: EnvironmentID, _ body: (inout Scheduler) throws -> Void
    ) throws {
        do {
            try body(&self)
        } catch let error as PostgresError where !error.isConnectionLost {
            logger.error(
                "an environment's polls, or its catalogues, cannot be brought forward",
                metadata: ["environment": "\(environment)", "error": "\(error)"])
        }
    }

    /// When everybody was read, or nobody is waited for any longer: who was not counts as before.
    private mutating func settle(
        after run: Int64, since: Timestamp, in environment: EnvironmentID, whoeverIsMissing: Bool
    ) throws {
        guard let polls = try directory.id(of: .polls, in: environment, create: false, on: &connection) else { return }
        if !whoeverIsMissing {
            let answer = try connection.run(PollStore.isUnderWay(polls: polls, in: environment))
            if try answer[0].decode(Bool.self) { return }
        }
        guard try audiences.settle(environment, since: since, on: &connection) else { return }
        try audiences.forgetTrees(environment, on: &connection)
        try connection.run(PollStore.settled(run, in: environment))
    }

    /// One session holds an advisory lock; it is gone with the connection.
    private mutating func isActive() throws -> Bool {
        if lockedOpenCount == connection.openCount { return true }
        guard try connection.run(PollStore.tryLock())[0].decode(Bool.self) else { return false }
        lockedOpenCount = connection.openCount
        logger.notice("this scheduler is the active one")
        return true
    }

    /// One whose adapter cannot be made is polled in full: what is wrong with it is said where it would be called.
    private mutating func capabilities(of environment: EnvironmentID) throws -> BackendCapabilities? {
        do {
            return try fetcher.adapters.adapter(of: environment, on: &connection).capabilities
        } catch is MissingBackend {
            return nil
        }
    }

    /// The run counts as begun when all of it is written: after a crash the rest follows.
    private mutating func begin(
        _ run: Int64, isFullDue: Bool, fullAge: Duration?, in environment: EnvironmentID, _ now: Timestamp
    ) throws {
        let realms = try directory.ids(of: [.users, .polls], in: environment, create: true, on: &connection)
        guard let users = realms[.users], let polls = realms[.polls] else { return }
        let people = try connection.run(BackendPeople.initialized(users: users, in: environment)).decode(String.self)
        let beat = ScheduleRule.Beat(
            try capabilities(of: environment), peopleCount: people.count, isFullDue: isFullDue, fullAge: fullAge)
        if beat.isFull { try connection.run(PollStore.beginFull(in: environment)) }
        let answers = try connection.run([
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
        var rest = due[...]
        while !rest.isEmpty {
            var batch = WriteBatch(environment: environment)
            for (decision, person) in rest.prefix(Self.batchCountMax).enumerated() {
                let key = ObjectKey(realm: polls, kind: .poll, id: RealmContents.pollID(of: person))
                let poll = Poll(run: run, person: person, dueAt: now)
                batch.expect(key, at: objects[key]?.position ?? 0, decision: decision)
                batch.put(key, try CanonicalJSON(encoding: poll, by: encoder), decision: decision)
            }
            _ = try batch.commit(on: &connection)
            rest = rest.dropFirst(Self.batchCountMax)
        }
        try connection.run(PollStore.begun(run, isFull: beat.isFull, in: environment))
        logger.debug(
            "a run has begun",
            metadata: ["environment": "\(environment)", "run": "\(run)", "polls": "\(due.count)"])
    }
}
