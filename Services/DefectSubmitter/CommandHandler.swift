import BackendProtocol
import Essentials
import FoundationEssentials
import KeyedWorker
import Model
import ObjectStore
import Postgres

/// Loads what commands concern, lets `CommandRule` decide, and writes what it decided; and has people's own logins
/// checked.
struct CommandHandler: Handler {
    static let schemaOldest: Int32 = 30

    struct Call: Sendable {
        enum Work: Sendable {
            /// - Parameters:
            ///   - id: That of the ledger's row.
            ///   - account: The position of the person's account; 0: there is none.
            case command(CommandAction, id: UUID, account: Int64)
            /// - Parameter position: That of the account that is checked.
            case login(position: Int64)
        }

        let work: Work
        let tracker: any RecordEditing
        let deadline: WriteDeadline
    }

    enum Answer: Sendable {
        case command(CommandAnswer, id: UUID, account: Int64)
        case login(Result<Void, BackendError>, position: Int64)
    }

    let rule: CommandRule
    let trackers: OwnTrackers
    let callMax: Duration
    private var directory = RealmDirectory()
    let decoder = JSONDecoder()
    let encoder = JSONEncoder()

    init(rule: CommandRule, trackers: OwnTrackers, callMax: Duration) {
        self.rule = rule
        self.trackers = trackers
        self.callMax = callMax
    }

    mutating func decide(
        _ inputs: [WorkItem<Answer>], in environment: EnvironmentID, batch: inout WriteBatch,
        on connection: inout Connection
    ) throws -> [Disposition<Call>] {
        let started = ContinuousClock.now
        let realms = try directory.ids(
            of: Set(inputs.map(\.subject.realm)), in: environment, create: false, on: &connection)
        let keys = inputs.map { input in
            realms[input.subject.realm].map { ObjectKey(realm: $0, kind: input.subject.kind, id: input.subject.id) }
        }
        let loaded = try Loaded(keys.compactMap(\.self), in: environment, decoder, on: &connection)
        var writes = CommandWrites(loaded)
        var nexts: [Disposition<Call>] = []
        for (decision, (input, key)) in zip(inputs, keys).enumerated() {
            guard let key else {
                nexts.append(.finished)
                continue
            }
            batch.expect(key, at: loaded.objects[key]?.position ?? 0, decision: decision)
            let turn = Turn(key: key, decision: decision, input: input, started: started)
            do {
                nexts.append(
                    key.kind == .defectAccount
                        ? try decideLogin(turn, loaded, &writes) : try decideCommand(turn, loaded, &writes))
            } catch let error as Undecodable {
                nexts.append(.dead(reason: error.description))
            } catch let error as MissingBackend {
                // The key may be configured later.
                nexts.append(.park(reason: error.description, after: rule.retryMax, cause: .planned))
            }
        }
        try writes.write(to: &batch, encoder)
        return nexts
    }

    /// An input that is decided.
    struct Turn {
        let key: ObjectKey
        let decision: Int
        let input: WorkItem<Answer>
        let started: ContinuousClock.Instant
    }

    // MARK: Commands

    private func decideCommand(
        _ turn: Turn, _ loaded: Loaded, _ writes: inout CommandWrites
    ) throws -> Disposition<Call> {
        var state = try loaded.state(of: turn.key, decoder)
        state.canCall = turn.input.canCall
        let target = loaded.target(of: turn.key, state)
        if state.attempt == nil, writes.hasBegun(target) { state.hasTurn = false }
        var origin = CommandRule.Origin.look
        // What is heard of an earlier call says nothing any more.
        let account = loaded.accounts[turn.key.realm]?.position ?? 0
        var isSameLogin = false
        if case .answer(.command(let answer, let id, let called)) = turn.input.origin, id == state.attempt?.call {
            origin = .answer(answer)
            isSameLogin = called == account
        }
        var decision = rule.decide(state, origin, attemptCount: turn.input.attemptCount)
        // Another login was stored meanwhile.
        if !isSameLogin { decision.loginRefused = nil }
        let id = UUID()
        let step: Disposition<Call>
        switch decision.step {
        case .finished: step = .finished
        case .again: step = .again
        case .park(let reason, let after, let cause):
            step = .park(reason: reason, after: after, cause: cause)
            if !state.hasTurn { writes.wait(turn.key, for: target, loaded.place(turn.key)) }
        case .call(let action):
            let deadline = turn.started + callMax * Settings.leaseCallsMax.sending
            // A call that cannot be made begins nothing: without a tracker nothing is written either.
            let tracker = try loaded.tracker(of: turn.key.realm, trackers)
            step = .call(
                Call(
                    work: .command(action, id: id, account: account), tracker: tracker,
                    deadline: WriteDeadline(deadline)), startBefore: deadline)
        }
        writes.add(decision, turn.key, state, target: target, call: id, turn.decision)
        return step
    }

    // MARK: Calling

    func caller(
        on connection: inout Connection, for environment: EnvironmentID
    ) throws -> @Sendable (Call) async -> Answer {
        { call in
            switch call.work {
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

    func unmade(_ call: Call) -> Answer? {
        switch call.work {
        case .command(let action, let id, let account):
            .command(.notMade(isUncertain: action.leavesSomething), id: id, account: account)
        case .login: nil
        }
    }

    func kind(of call: Call) -> CallKind {
        switch call.work {
        case .command: .write
        case .login: .read
        }
    }
}
