import BackendConnections
import BackendProtocol
import Compass
import FoundationEssentials
import KeyedWorker
import Logging
import Model
import ObjectStore
import Postgres

/// Reads what has happened to the defects of an environment, page by page, and writes notices and mirrors; or reads all
/// of them, and compares the mirrors. It does so with the environment's account for everybody, or with each person's
/// own login for them alone.
struct DefectHandler: Handler {
    static let schemaOldest: Int32 = 30

    /// A poll that is decided, and what its decision is made from.
    struct Turn {
        let environment: EnvironmentID
        let decision: Int
        let object: RealmObject
        let poll: DefectPoll
        let tracker: TrackerIDs
        /// The environment's, now.
        let position: Int64
        /// Up to where this poll's login has read the tracker, as it is stored.
        let watermark: String?
        /// Up to where anybody has.
        let everybodys: String?
        /// Of a person's poll.
        let own: OwnReader?
        /// The number of the realm of whose poll it is.
        let realm: Int32?
        /// Up to where the account has; of a person's poll, if it has read for them until a short while ago.
        let accountWatermark: String?
        /// The oldest of people's own, until the account has read what they had not.
        let ownOldest: String?
    }

    private let trackers: TrackerDirectory
    let logger: Logger
    var directory = RealmDirectory()
    let decoder = JSONDecoder()
    /// Where each environment's tracker is, and how many others it was before.
    private var known: [EnvironmentID: (tracker: DefectTracker?, revision: Int64)] = [:]
    private var reported = ReportedRows()
    var complaints = Complaints()

    init(_ trackers: TrackerDirectory, logger: Logger) {
        self.trackers = trackers
        self.logger = logger
    }

    mutating func decide(
        _ inputs: [WorkItem<ReadAnswer>], in environment: EnvironmentID, batch: inout WriteBatch,
        on connection: inout Connection
    ) throws -> [Disposition<Reading>] {
        let stored = try DefectTracker.load(environment, on: &connection)
        note(stored, of: environment)
        // Without a tracker there is nothing to read.
        guard let stored, let polls = try directory.id(of: .polls, in: environment, create: false, on: &connection)
        else { return inputs.map { _ in .finished } }
        let keys = inputs.map { ObjectKey(realm: polls, kind: .defectPoll, id: $0.subject.id) }
        let loaded = try LoadedPolls(keys, at: stored, &directory, decoder, &connection)
        var writes = DefectWrites(batch)
        var dispositions: [Disposition<Reading>] = []
        for (decision, input) in inputs.enumerated() {
            let key = keys[decision]
            writes.expect(key, at: loaded.objects[key]?.position ?? 0, decision)
            do {
                guard let turn = try loaded.turn(of: key, decision, decoder) else {
                    dispositions.append(.finished)
                    continue
                }
                // Whose login it was to be read with is not how the tracker is read by now.
                let isCurrent = turn.poll.person == nil ? stored.account != nil : turn.own != nil
                dispositions.append(isCurrent ? try decide(turn, input, stored, &writes, &connection) : .finished)
                if case .finished? = dispositions.last { finish(turn, &writes) }
            } catch let error as Undecodable {
                dispositions.append(.dead(reason: error.description))
            }
        }
        batch = writes.batch
        return dispositions
    }

    /// Remembers which tracker a decision saw, and counts how often it was another one than before.
    private mutating func note(_ tracker: DefectTracker?, of environment: EnvironmentID) {
        let before = known[environment]
        guard before == nil || before?.tracker != tracker else { return }
        known[environment] = (tracker, (before?.revision ?? 0) + 1)
    }

    func callerRevision(of environment: EnvironmentID) -> Int64 { known[environment]?.revision ?? 0 }

    func caller(
        on connection: inout Connection, for environment: EnvironmentID
    ) throws -> @Sendable (Reading) async -> ReadAnswer {
        do {
            return try trackers.reader(of: environment, on: &connection)
        } catch let error as MissingBackend {
            throw CallerUnavailable(reason: error.description)
        }
    }

    private func finish(_ turn: Turn, _ writes: inout DefectWrites) {
        let (run, scope) = (turn.poll.run, turn.poll.scope)
        let (environment, decision) = (turn.environment, turn.decision)
        if let realm = turn.realm {
            writes.expect(
                OwnStore.expectUnfinished(run, of: scope, realm, in: environment, decision: decision))
            writes.also(OwnStore.finish(run, of: scope, realm, in: environment, decision: decision))
        } else {
            writes.expect(DefectStore.expectUnfinished(run, of: scope, in: environment, decision: decision))
            writes.also(DefectStore.finish(run, of: scope, in: environment, decision: decision))
        }
    }

    private mutating func decide(
        _ turn: Turn, _ input: WorkItem<ReadAnswer>, _ stored: DefectTracker, _ writes: inout DefectWrites,
        _ connection: inout Connection
    ) throws -> Disposition<Reading> {
        // What was read for an earlier run, of another tracker or with another login, or before somebody else moved the
        // watermark says nothing any more.
        guard case .answer(let answer) = input.origin, answer.reading.isOf(turn) else {
            if let own = turn.own, let problem = trackers.problem(with: own, at: stored) {
                // The key may be configured later.
                return .park(reason: problem, after: Self.keyWait, cause: .planned)
            }
            return .call(Reading(turn), startBefore: .now + Self.startMax)
        }
        switch answer.result {
        case .success(let page):
            complaints.forget(turn.environment, turn.realm)
            reported.report(page.unreadable, in: turn.environment, logger)
            switch turn.poll.scope {
            case .changes: return try follow(page, answer.reading, turn, &writes, &connection)
            case .comparison: return try compare(page, answer.reading, turn, &writes, &connection)
            }
        case .failure(let error):
            return try next(after: error, input.attemptCount, turn, &writes)
        }
    }

    /// How long a poll waits for a key that opens its person's login.
    private static let keyWait = Duration.seconds(60)
    /// A call that has waited for longer is decided anew.
    static let startMax = Duration.seconds(600)

    /// What happens after a page that could not be read: the reading begins anew.
    private mutating func next(
        after error: BackendError, _ attemptCount: Int, _ turn: Turn, _ writes: inout DefectWrites
    ) throws -> Disposition<Reading> {
        if case .unauthorized(let reason) = error {
            if let own = turn.own {
                try refuse(own, reason, turn, &writes)
                return .finished
            }
            if complaints.isNew(turn.environment, turn.realm) {
                logger.error(
                    "the tracker refuses the service account; it is asked again and again until it does not",
                    metadata: ["environment": "\(turn.environment)", "reason": "\(reason)"])
            }
        }
        if let retry = error.retry(afterAttempts: attemptCount) {
            return .park(reason: retry.reason, after: retry.wait, cause: .away(askingFor: retry.asked))
        }
        if turn.own == nil || complaints.isNew(turn.environment, turn.realm) {
            logger.error(
                "the tracker refuses to be read; the next run asks again",
                metadata: [
                    "environment": "\(turn.environment)", "scope": "\(turn.poll.scope.rawValue)", "error": "\(error)",
                ])
        }
        return .finished
    }

    /// The person is told by their account, and not asked for again until they store another login: trackers lock
    /// accounts.
    private func refuse(
        _ own: OwnReader, _ reason: String, _ turn: Turn, _ writes: inout DefectWrites
    ) throws {
        struct Refusal: Encodable {
            let status = DefectAccount.Status.refused
            let reason: String
        }
        try writes.patch(own.account, Refusal(reason: reason), turn.decision)
        logger.notice(
            "the tracker refuses a person's own login; they are told by nobody until they store another one",
            metadata: ["environment": "\(turn.environment)", "realm": "\(own.person.realm)"])
    }
}

extension Reading {
    /// The first page of a poll.
    init(_ turn: DefectHandler.Turn) {
        let own = turn.watermark.flatMap(CompassTime.init)?.secondsOfItsClock
        let account = turn.accountWatermark.flatMap(CompassTime.init)?.secondsOfItsClock
        let ownOldest = turn.ownOldest.flatMap(CompassTime.init)?.secondsOfItsClock
        let everybodys = turn.everybodys.flatMap(CompassTime.init)?.secondsOfItsClock
        let now = turn.poll.dueAt
        let start =
            turn.own == nil
            ? WatermarkRule.start(account: account, ownOldest: ownOldest, everybodys: everybodys, now: now)
            : WatermarkRule.start(own: own, account: account, everybodys: everybodys, now: now)
        let since = WatermarkRule.since(start.time ?? WatermarkRule.beginning(now: now))
        self.init(
            scope: turn.poll.scope, own: turn.own, part: turn.own == nil ? .everybodys : .assigned,
            tracker: turn.tracker, position: turn.object.position, askedAt: turn.position, watermark: turn.watermark,
            since: CompassTime(secondsOfItsClock: since), reached: start.reached, isFirst: start.time == nil)
    }

    /// Whether a page that was read for this is what a poll waits for.
    func isOf(_ turn: DefectHandler.Turn) -> Bool {
        position == turn.object.position && tracker == turn.tracker && scope == turn.poll.scope
            && (scope == .comparison || watermark == turn.watermark)
            && own?.account.position == turn.own?.account.position
    }
}
