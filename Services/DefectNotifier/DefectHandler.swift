import BackendConnections
import BackendProtocol
import Compass
import FoundationEssentials
import KeyedWorker
import Logging
import Model
import ObjectStore
import Postgres

/// Processes the polls of an environment's tracker, page by page. A history poll writes notices and mirrors; a
/// comparison reads all defects and compares the mirrors. Polls use the environment's account for all people, or each
/// person's own login for that person alone.
struct DefectHandler: Handler {
    static let schemaOldest: Int32 = 30

    /// A poll that is processed, with the state that its decision is based on.
    struct PollContext {
        let environment: EnvironmentID
        let decision: Int
        let object: RealmObject
        let poll: DefectPoll
        let tracker: TrackerIDs
        /// The environment's current position.
        let position: Int64
        /// The stored watermark of this poll's login in the tracker.
        let watermark: String?
        /// The newest watermark of all logins in the tracker.
        let environmentWatermark: String?
        /// The person's own login, in a person's poll with an open login.
        let own: OwnLoginReader?
        /// The number of the realm of the poll's person; `nil` in a poll of the environment.
        let realm: Int32?
        /// The watermark of the environment's account. In a person's poll it is set only if the account has polled
        /// recently.
        let accountWatermark: String?
        /// The oldest watermark of people's own logins, until the account has caught up with it.
        let oldestOwnWatermark: String?
    }

    private let trackers: TrackerDirectory
    let logger: Logger
    var directory = RealmDirectory()
    let decoder = JSONDecoder()
    /// The last tracker of each environment, and the number of changes observed.
    private var trackerRevisions: [EnvironmentID: (tracker: DefectTracker?, revision: Int64)] = [:]
    private var unreadableRows = UnreadableRowLog()
    var loginFailures = LoginFailureLog()

    init(_ trackers: TrackerDirectory, logger: Logger) {
        self.trackers = trackers
        self.logger = logger
    }

    mutating func decide(
        _ inputs: [WorkItem<PageResponse>], in environment: EnvironmentID, batch: inout WriteBatch,
        on connection: inout Connection
    ) throws -> [Disposition<PageRequest>] {
        let stored = try DefectTracker.load(environment, on: &connection)
        updateRevision(of: environment, with: stored)
        // Without a tracker there is nothing to read.
        guard let stored, let polls = try directory.id(of: .polls, in: environment, create: false, on: &connection)
        else { return inputs.map { _ in .finished } }
        let keys = inputs.map { ObjectKey(realm: polls, kind: .defectPoll, id: $0.subject.id) }
        let snapshot = try PollSnapshot(keys, at: stored, &directory, decoder, &connection)
        var writes = DefectWrites(batch)
        var dispositions: [Disposition<PageRequest>] = []
        for (decision, input) in inputs.enumerated() {
            let key = keys[decision]
            writes.batch.expect(key, at: snapshot.objects[key]?.position ?? 0, decision: decision)
            do {
                guard let context = try snapshot.context(of: key, decision, decoder) else {
                    dispositions.append(.finished)
                    continue
                }
                // The poll is obsolete if the environment switched between its account and own logins.
                let isCurrent = context.poll.person == nil ? stored.account != nil : context.own != nil
                dispositions.append(isCurrent ? try decide(context, input, stored, &writes, &connection) : .finished)
                if case .finished? = dispositions.last { finish(context, &writes) }
            } catch let error as StoredJSONError {
                dispositions.append(.deadLettered(reason: error.description))
            }
        }
        batch = writes.batch
        return dispositions
    }

    /// Increments the environment's revision if its tracker differs from the last one.
    private mutating func updateRevision(of environment: EnvironmentID, with tracker: DefectTracker?) {
        let before = trackerRevisions[environment]
        guard before == nil || before?.tracker != tracker else { return }
        trackerRevisions[environment] = (tracker, (before?.revision ?? 0) + 1)
    }

    func callerRevision(of environment: EnvironmentID) -> Int64 { trackerRevisions[environment]?.revision ?? 0 }

    func caller(
        on connection: inout Connection, for environment: EnvironmentID
    ) throws -> @Sendable (PageRequest) async -> PageResponse {
        do {
            return try trackers.reader(of: environment, on: &connection)
        } catch let error as MissingBackend {
            throw CallerUnavailable(reason: error.description)
        }
    }

    private func finish(_ context: PollContext, _ writes: inout DefectWrites) {
        let (run, scope, realm) = (context.poll.run, context.poll.scope, context.realm)
        let (environment, decision) = (context.environment, context.decision)
        writes.batch.expect(DefectStore.expectUnfinished(run, of: scope, realm, in: environment, decision: decision))
        writes.batch.append(DefectStore.finish(run, of: scope, realm, in: environment, decision: decision))
    }

    private mutating func decide(
        _ context: PollContext, _ input: WorkItem<PageResponse>, _ stored: DefectTracker, _ writes: inout DefectWrites,
        _ connection: inout Connection
    ) throws -> Disposition<PageRequest> {
        // A response is obsolete if the run, the tracker or the login has changed, or if another worker has moved the
        // watermark.
        guard case .result(let response) = input.origin, response.request.matches(context) else {
            if let own = context.own, let reason = trackers.unusableReason(of: own, at: stored) {
                // The encryption key may be configured later.
                return .deferred(reason: reason, after: Self.keyWait, cause: .planned)
            }
            return .call(PageRequest(context), startBefore: .now + Self.startMax)
        }
        switch response.result {
        case .success(let page):
            loginFailures.clear(context.environment, context.realm)
            unreadableRows.report(page.unreadable, in: context.environment, logger)
            switch context.poll.scope {
            case .changes: return try applyChanges(page, response.request, context, &writes, &connection)
            case .comparison: return try compareMirrors(page, response.request, context, &writes, &connection)
            }
        case .failure(let error):
            return try disposition(after: error, input.attemptCount, context, &writes)
        }
    }

    /// Delay before a retry of a poll whose person's login cannot be decrypted.
    private static let keyWait = Duration.seconds(60)
    /// A call that has waited longer than this is reprocessed instead of sent.
    static let startMax = Duration.seconds(600)

    /// Returns the next step after a failed read. A retry restarts from the first page.
    private mutating func disposition(
        after error: BackendError, _ attemptCount: Int, _ context: PollContext, _ writes: inout DefectWrites
    ) throws -> Disposition<PageRequest> {
        if case .unauthorized(let reason) = error {
            if let own = context.own {
                try markRefused(own, reason, context, &writes)
                return .finished
            }
            if loginFailures.shouldReport(context.environment, context.realm) {
                logger.error(
                    "tracker rejects the service account; retrying",
                    metadata: ["environment": "\(context.environment)", "reason": "\(reason)"])
            }
        }
        if let retry = error.retry(afterAttempts: attemptCount) {
            return .deferred(reason: retry.reason, after: retry.wait, cause: .unavailable(retryAfter: retry.retryAfter))
        }
        if context.own == nil || loginFailures.shouldReport(context.environment, context.realm) {
            logger.error(
                "tracker rejects the query; retrying with the next run",
                metadata: [
                    "environment": "\(context.environment)", "scope": "\(context.poll.scope.rawValue)",
                    "error": "\(error)",
                ])
        }
        return .finished
    }

    /// Marks the person's account as refused, and stops polling with it until they store another login: trackers lock
    /// accounts after repeated failures.
    private func markRefused(
        _ own: OwnLoginReader, _ reason: String, _ context: PollContext, _ writes: inout DefectWrites
    ) throws {
        struct RefusedStatus: Encodable {
            let status = DefectAccount.Status.refused
            let reason: String
        }
        try writes.patch(own.account, RefusedStatus(reason: reason), context.decision)
        logger.notice(
            "tracker rejects a personal login; notices are suspended",
            metadata: ["environment": "\(context.environment)", "realm": "\(own.person.realm)"])
    }
}

extension PageRequest {
    /// Makes the request for the first page of a poll.
    init(_ context: DefectHandler.PollContext) {
        let own = context.watermark.flatMap(CompassTime.init)?.clockSeconds
        let account = context.accountWatermark.flatMap(CompassTime.init)?.clockSeconds
        let oldestOwnWatermark = context.oldestOwnWatermark.flatMap(CompassTime.init)?.clockSeconds
        let environment = context.environmentWatermark.flatMap(CompassTime.init)?.clockSeconds
        let now = context.poll.dueAt
        let start =
            context.own == nil
            ? WatermarkRule.start(
                account: account, oldestOwnWatermark: oldestOwnWatermark, environment: environment, now: now)
            : WatermarkRule.start(own: own, account: account, environment: environment, now: now)
        let since = WatermarkRule.since(start.time ?? WatermarkRule.initialWatermark(now: now))
        self.init(
            scope: context.poll.scope, own: context.own, subset: context.own == nil ? .all : .assigned,
            tracker: context.tracker, position: context.object.position, startPosition: context.position,
            watermark: context.watermark, since: CompassTime(clockSeconds: since), watermarkMin: start.watermarkMin,
            isInitialRead: start.time == nil)
    }

    /// Whether a response to this request is still valid for a poll.
    func matches(_ context: DefectHandler.PollContext) -> Bool {
        position == context.object.position && tracker == context.tracker && scope == context.poll.scope
            && (scope == .comparison || watermark == context.watermark)
            && own?.account.position == context.own?.account.position
    }
}
