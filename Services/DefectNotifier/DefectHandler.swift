import BackendProtocol
import Compass
import Environments
import FoundationEssentials
import Logging
import Model
import Postgres
import Realms
import Work

/// Reads what has happened to the defects of an environment, page by page, and writes notices and mirrors; or reads all
/// of them, and compares the mirrors.
struct DefectHandler: Handler {
    static let schemaOldest: Int32 = 22

    /// A poll that is decided, and what its decision is made from.
    struct Turn {
        let environment: EnvironmentID
        let decision: Int
        let object: RealmObject
        let poll: DefectPoll
        let tracker: TrackerIDs
        /// The environment's, now.
        let position: Int64
        /// The tracker's, as it is stored.
        let watermark: String?
    }

    private let trackers: TrackerDirectory
    let logger: Logger
    var directory = RealmDirectory()
    let decoder = JSONDecoder()
    /// Where each environment's tracker is, and how many others it was before.
    private var known: [EnvironmentID: (tracker: DefectTracker?, revision: Int64)] = [:]
    private var reported = ReportedRows()
    /// Environments whose service account was refused, which was said.
    private var refused: Set<EnvironmentID> = []

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
        // Without a tracker, or an account for it, there is nothing to read.
        guard let stored, stored.account != nil,
            let polls = try directory.id(of: .polls, in: environment, create: false, on: &connection)
        else { return inputs.map { _ in .finished } }
        let keys = inputs.map { ObjectKey(realm: polls, kind: .defectPoll, id: $0.subject.id) }
        let answers = try connection.run([
            RealmObject.load(keys, in: environment), DefectStore.finished(in: environment),
            DefectStore.place(of: environment),
        ])
        let objects = try RealmObject.byKey(answers[0])
        let finishedRuns = try DefectStore.finishedRuns(answers[1])
        let (position, reader, watermark) = try answers[2][0].decode(Int64.self, UUID?.self, String?.self)
        var writes = DefectWrites(batch)
        var dispositions: [Disposition<Reading>] = []
        for (decision, input) in inputs.enumerated() {
            let key = keys[decision]
            writes.expect(key, at: objects[key]?.position ?? 0, decision)
            do {
                guard let object = objects[key], let poll = try object.decoded(as: DefectPoll.self, by: decoder),
                    poll.run > finishedRuns[poll.scope] ?? 0
                else {
                    dispositions.append(.finished)
                    continue
                }
                let turn = Turn(
                    environment: environment, decision: decision, object: object, poll: poll, tracker: stored.ids,
                    position: position, watermark: reader == stored.ids.namespace ? watermark : nil)
                dispositions.append(try decide(turn, input, &writes, &connection))
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
            let session = try trackers.session(of: environment, on: &connection)
            return { reading in await session.read(reading) }
        } catch let error as MissingBackend {
            throw CallerUnavailable(reason: error.description)
        }
    }

    private func finish(_ turn: Turn, _ writes: inout DefectWrites) {
        let (run, scope) = (turn.poll.run, turn.poll.scope)
        writes.expect(
            DefectStore.expectUnfinished(run, of: scope, in: turn.environment, decision: turn.decision))
        writes.also(DefectStore.finish(run, of: scope, in: turn.environment, decision: turn.decision))
    }

    private mutating func decide(
        _ turn: Turn, _ input: WorkItem<ReadAnswer>, _ writes: inout DefectWrites, _ connection: inout Connection
    ) throws -> Disposition<Reading> {
        // What was read for an earlier run, of another tracker, or before somebody else moved the watermark says
        // nothing any more.
        guard case .answer(let answer) = input.origin, answer.reading.isOf(turn) else {
            return .call(Reading(turn), startBefore: .now + Self.startMax)
        }
        switch answer.result {
        case .success(let page):
            refused.remove(turn.environment)
            reported.report(page.unreadable, in: turn.environment, logger)
            switch turn.poll.scope {
            case .changes: return try follow(page, answer.reading, turn, &writes, &connection)
            case .comparison: return try compare(page, answer.reading, turn, &writes, &connection)
            }
        case .failure(let error):
            return next(after: error, input.attemptCount, turn)
        }
    }

    /// A call that has waited for longer is decided anew.
    static let startMax = Duration.seconds(600)

    /// What happens after a page that could not be read: the reading begins anew.
    private mutating func next(
        after error: BackendError, _ attemptCount: Int, _ turn: Turn
    ) -> Disposition<Reading> {
        if case .unauthorized(let reason) = error, refused.insert(turn.environment).inserted {
            logger.error(
                "the tracker refuses the service account; it is asked again and again until it does not",
                metadata: ["environment": "\(turn.environment)", "reason": "\(reason)"])
        }
        if let retry = error.retry(afterAttempts: attemptCount) {
            return .park(reason: retry.reason, after: retry.wait, cause: .away(askingFor: retry.asked))
        }
        logger.error(
            "the tracker refuses to be read; the next run asks again",
            metadata: [
                "environment": "\(turn.environment)", "scope": "\(turn.poll.scope.rawValue)", "error": "\(error)",
            ])
        return .finished
    }
}

extension Reading {
    /// The first page of a poll.
    init(_ turn: DefectHandler.Turn) {
        let watermark = turn.watermark.flatMap(CompassTime.init)?.secondsOfItsClock
        let since = WatermarkRule.since(watermark ?? WatermarkRule.beginning(now: turn.poll.dueAt))
        self.init(
            scope: turn.poll.scope, tracker: turn.tracker, position: turn.object.position, askedAt: turn.position,
            watermark: turn.watermark, since: CompassTime(secondsOfItsClock: since))
    }

    /// Whether a page that was read for this is what a poll waits for.
    func isOf(_ turn: DefectHandler.Turn) -> Bool {
        position == turn.object.position && tracker == turn.tracker && scope == turn.poll.scope
            && (scope == .comparison || watermark == turn.watermark)
    }
}
