import BackendProtocol
import Essentials
import FoundationEssentials
import KeyedWorker
import Model
import ObjectStore
import Postgres

/// Loads the state of commands, applies `CommandRule` and writes its decisions. Also checks people's own logins.
struct CommandHandler: Handler {
    static let schemaOldest: Int32 = 32

    struct Call: Sendable {
        enum Request: Sendable {
            /// - Parameters:
            ///   - id: The call id of the ledger's row.
            ///   - account: The position of the person's account; 0: there is none.
            case command(CommandAction, id: UUID, account: Int64)
            /// - Parameter position: The position of the checked account.
            case login(position: Int64)
        }

        let request: Request
        let tracker: any RecordEditing
        let deadline: WriteDeadline
    }

    enum CallResult: Sendable {
        case command(ActionResult, id: UUID, account: Int64)
        case login(Result<Void, BackendError>, position: Int64)
    }

    let rule: CommandRule
    let trackers: OwnLoginTrackers
    let callMax: Duration
    private var directory = RealmDirectory()
    let decoder = JSONDecoder()
    let encoder = JSONEncoder()

    init(rule: CommandRule, trackers: OwnLoginTrackers, callMax: Duration) {
        self.rule = rule
        self.trackers = trackers
        self.callMax = callMax
    }

    mutating func decide(
        _ inputs: [WorkItem<CallResult>], in environment: EnvironmentID, batch: inout WriteBatch,
        on connection: inout Connection
    ) throws -> [Disposition<Call>] {
        let started = ContinuousClock.now
        let realms = try directory.ids(
            of: Set(inputs.map(\.subject.realm)), in: environment, create: false, on: &connection)
        let keys = inputs.map { input in
            realms[input.subject.realm].map { ObjectKey(realm: $0, kind: input.subject.kind, id: input.subject.id) }
        }
        let snapshot = try CommandSnapshot(keys.compactMap(\.self), in: environment, decoder, on: &connection)
        var writes = CommandWrites(snapshot)
        var nexts: [Disposition<Call>] = []
        for (decision, (input, key)) in zip(inputs, keys).enumerated() {
            guard let key else {
                nexts.append(.finished)
                continue
            }
            batch.expect(key, at: snapshot.objects[key]?.position ?? 0, decision: decision)
            let context = DecisionContext(key: key, decision: decision, input: input, started: started)
            do {
                nexts.append(
                    key.kind == .defectAccount
                        ? try decideLogin(context, snapshot, &writes) : try decideCommand(context, snapshot, &writes))
            } catch let error as StoredJSONError {
                nexts.append(.deadLettered(reason: error.description))
            } catch let error as MissingBackend {
                // The encryption key may be configured later.
                nexts.append(.deferred(reason: error.description, after: rule.retryMax, cause: .planned))
            }
        }
        try writes.write(to: &batch, encoder)
        return nexts
    }

    /// An input with the state of its decision.
    struct DecisionContext {
        let key: ObjectKey
        let decision: Int
        let input: WorkItem<CallResult>
        let started: ContinuousClock.Instant
    }

    // MARK: Commands

    private func decideCommand(
        _ context: DecisionContext, _ snapshot: CommandSnapshot, _ writes: inout CommandWrites
    ) throws -> Disposition<Call> {
        var state = try snapshot.state(of: context.key, decoder)
        state.canCall = context.input.canCall
        let target = snapshot.target(of: context.key, state)
        if state.attempt == nil, writes.hasStarted(target) { state.isNextForRecord = false }
        var origin = CommandRule.Origin.event
        // A result of an earlier call is obsolete.
        let account = snapshot.accounts[context.key.realm]?.position ?? 0
        var isSameLogin = false
        if case .result(.command(let result, let id, let called)) = context.input.origin, id == state.attempt?.call {
            origin = .result(result)
            isSameLogin = called == account
        }
        var decision = rule.decide(state, origin, attemptCount: context.input.attemptCount)
        // Another login was stored meanwhile.
        if !isSameLogin { decision.loginRejection = nil }
        let id = UUID()
        let step: Disposition<Call>
        switch decision.step {
        case .finished: step = .finished
        case .reprocess: step = .reprocess
        case .deferred(let reason, let after, let cause):
            step = .deferred(reason: reason, after: after, cause: cause)
            if !state.isNextForRecord {
                writes.wait(
                    context.key, for: snapshot.recordTarget(context.key) ?? target, snapshot.recordKey(context.key))
            }
        case .call(let action):
            let deadline = context.started + callMax * Settings.leaseCallsMax.sending
            // If the call cannot be made, nothing is written: without a tracker there is no attempt.
            let tracker = try snapshot.tracker(of: context.key.realm, trackers)
            step = .call(
                Call(
                    request: .command(action, id: id, account: account), tracker: tracker,
                    deadline: WriteDeadline(deadline)), startBefore: deadline)
        }
        writes.add(decision, context.key, state, target: target, call: id, context.decision)
        return step
    }

    // MARK: Calling

    func caller(
        on connection: inout Connection, for environment: EnvironmentID
    ) throws -> @Sendable (Call) async -> CallResult {
        { call in
            switch call.request {
            case .command(let action, let id, let account):
                let caller = CommandCaller(tracker: call.tracker, deadline: call.deadline)
                return .command(await caller.call(action), id: id, account: account)
            case .login(let position):
                do throws(BackendError) {
                    try await call.tracker.logIn()
                    return .login(.success(()), position: position)
                } catch {
                    return .login(.failure(error), position: position)
                }
            }
        }
    }

    func resultWhenSkipped(_ call: Call) -> CallResult? {
        switch call.request {
        case .command(let action, let id, let account):
            .command(.notSent(isUncertain: action.mayHaveEffects), id: id, account: account)
        case .login: nil
        }
    }

    func kind(of call: Call) -> CallKind {
        switch call.request {
        case .command(.read, _, _), .login: .read
        case .command: .write
        }
    }
}
