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

/// Writes the polls of each environment's next run as objects. One instance is the leader, the others are standbys.
struct Scheduler: ~Copyable {
    /// Key of the advisory lock that the leader's session holds.
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
    ///   - conninfo: Parameters of a separate connection, whose session holds the leader's lock.
    ///   - fetcher: Provides the capabilities of back ends.
    init(conninfo: String, fetcher: RealmFetcher, staleMax: Duration, logger: Logger) throws {
        session = try SchedulerSession(conninfo, lockKey: Self.lockKey, logger: logger)
        self.fetcher = fetcher
        self.staleMax = staleMax
        self.logger = logger
        audiences = CatalogueReconciler(logger: logger)
    }

    /// Starts due runs, and reconciles catalogues after finished runs.
    ///
    /// - Returns: Whether this scheduler is the leader.
    mutating func step(now: Timestamp) throws -> Bool {
        guard try session.isActive() else { return false }
        let due = try session.connection.run(PollStore.due).decode(
            EnvironmentID.self, Int64.self, Bool.self, Int64?.self)
        let isDue = Set(due.map(\.0))
        let unsettled = try session.connection.run(PollStore.unsettled).decode(
            EnvironmentID.self, Int64.self, Timestamp.self)
        for (environment, run, since) in unsettled {
            try isolate(environment) { scheduler in
                try scheduler.settle(
                    after: run, since: since, in: environment, ignoringPending: isDue.contains(environment))
            }
        }
        for (environment, run, isFullDue, fullAgeSeconds) in due {
            let fullAge = fullAgeSeconds.map { Duration.seconds($0) }
            try isolate(environment) { scheduler in
                try scheduler.start(run, isFullDue: isFullDue, fullAge: fullAge, in: environment, now)
            }
        }
        return true
    }

    /// Logs failures of one environment, so that the others are processed.
    private mutating func isolate(_ environment: EnvironmentID, _ body: (inout Scheduler) throws -> Void) throws {
        let logger = logger
        try SchedulerSession.alone(environment, &self, orLog: "scheduling of an environment failed", to: logger, body)
    }

    /// Reconciles the catalogues if all polls are finished, or `ignoringPending`. People without a new read are treated
    /// as unchanged.
    private mutating func settle(
        after run: Int64, since: Timestamp, in environment: EnvironmentID, ignoringPending: Bool
    ) throws {
        guard let polls = try directory.id(of: .polls, in: environment, create: false, on: &session.connection) else {
            return
        }
        if !ignoringPending {
            let pending = try session.connection.run(PollStore.isPending(polls: polls, in: environment))
            if try pending[0].decode(Bool.self) { return }
        }
        guard try audiences.settle(environment, since: since, on: &session.connection) else { return }
        try audiences.removeUnusedTrees(environment, on: &session.connection)
        try session.connection.run(PollStore.settled(run, in: environment))
    }

    /// Returns `nil` if the adapter cannot be created: the environment is then polled in full, and the call reports the
    /// error.
    private mutating func capabilities(of environment: EnvironmentID) throws -> BackendCapabilities? {
        do {
            return try fetcher.adapters.adapter(of: environment, on: &session.connection).capabilities
        } catch is MissingBackend {
            return nil
        }
    }

    /// Writes the polls of a run. The run counts as started when all of them are written; after a crash the rest
    /// follows.
    private mutating func start(
        _ run: Int64, isFullDue: Bool, fullAge: Duration?, in environment: EnvironmentID, _ now: Timestamp
    ) throws {
        let realms = try directory.ids(of: [.users, .polls], in: environment, create: true, on: &session.connection)
        guard let users = realms[.users], let polls = realms[.polls] else { return }
        let people = try session.connection.run(BackendPeople.initialized(users: users, in: environment)).decode(
            String.self)
        let mode = ScheduleRule.PollMode(
            try capabilities(of: environment), peopleCount: people.count, isFullDue: isFullDue, fullAge: fullAge)
        if mode.isFull { try session.connection.run(PollStore.beginFull(in: environment)) }
        let results = try session.connection.run([
            RealmObject.load(kinds: [.poll], realm: polls, in: environment), PollStore.finished(in: environment),
        ])
        let objects = try RealmObject.byKey(results[0])
        let finished = try PollStore.runs(results[1])
        var runs: [String: PollRunState] = [:]
        for (key, object) in objects {
            // An undecodable poll is written again.
            guard let poll = try? object.decoded(as: Poll.self, by: decoder) else { continue }
            runs[poll.person] = PollRunState(run: poll.run, dueAt: poll.dueAt, finishedRun: finished[key.id] ?? 0)
        }
        let polled = ScheduleRule.polls(of: people, known: runs, mode: mode)
        let due = ScheduleRule.due(polled, known: runs, run: run, now: now, staleMax: staleMax)
        let written = try due.map { person in
            let key = ObjectKey(realm: polls, kind: .poll, id: RealmContents.pollID(of: person))
            let poll = Poll(run: run, person: person, dueAt: now)
            return (key, objects[key]?.position ?? 0, try CanonicalJSON(encoding: poll, by: encoder))
        }
        try session.write(written, in: environment)
        try session.connection.run(PollStore.started(run, isFull: mode.isFull, in: environment))
        logger.debug(
            "poll run started", metadata: ["environment": "\(environment)", "run": "\(run)", "polls": "\(due.count)"])
    }
}
