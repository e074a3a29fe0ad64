import Synchronization

/// The state of the Compass sandbox: users, records, workspaces, switches, counts.
final class CompassSystem: SandboxSystem {
    private let state: Mutex<CompassState>

    /// - Parameter journalPath: Where records and queries survive a restart; nil keeps them in memory only.
    init(journalPath: String?) throws { state = Mutex(try CompassState(journalPath: journalPath)) }

    func withDials<Value: Sendable>(
        _ use: (inout SandboxDials<CompassSwitches>) throws -> Value
    ) rethrows -> Value {
        try state.withLock { try use(&$0.dials) }
    }

    var recordCount: Int { state.withLock { $0.records.count { $0 != nil } } }

    func withState<Value: Sendable>(_ body: (inout CompassState) -> Value) -> Value {
        state.withLock { body(&$0) }
    }

    /// Gives access to the state for an operation that may be refused.
    func checked<Value: Sendable>(
        _ body: (inout CompassState) throws(CompassRules.Refusal) -> Value
    ) throws(CompassRules.Refusal) -> Value {
        let outcome: Result<Value, CompassRules.Refusal> = state.withLock { state in
            do throws(CompassRules.Refusal) {
                return .success(try body(&state))
            } catch {
                return .failure(error)
            }
        }
        return try outcome.get()
    }

    // MARK: Logins

    /// - Returns: A token; `nil` when there is no such user, or the password is another.
    func logIn(_ user: String, password: String, repository: String, database: String) -> String? {
        state.withLock { state in
            guard !state.dials.switches.refusesLogins, let known = state.users[user], known.password == password
            else { return nil }
            return state.logins.token(
                of: user, repository: repository, database: database, nowMs: state.clock.nowMs,
                seconds: state.dials.switches.tokenSecondsMax)
        }
    }

    /// The user of an `Authorization`; `nil` if it is not valid.
    func user(_ authorization: String) -> CompassUser? {
        state.withLock { state in
            if state.dials.switches.refusesLogins { return nil }
            if let token = authorization.dropping("Basic ") {
                return state.users.values.first { $0.tokens?.contains(token) ?? false }
            }
            guard let token = authorization.dropping("Bearer "),
                let name = state.logins.user(of: token, nowMs: state.clock.nowMs)
            else { return nil }
            return state.users[name]
        }
    }

    func logOff(_ authorization: String) {
        state.withLock { state in
            if let token = authorization.dropping("Bearer ") { state.logins.end(token) }
        }
    }

    // MARK: Master data

    /// Adds users and projects. Each new user gets a personal folder.
    func load(_ organisation: CompassOrganisation) {
        state.withLock { state in
            let new = (organisation.users ?? []).map(\.name).filter { state.users[$0] == nil }
            state.write(.organisation(organisation))
            for name in new {
                state.write(
                    .folder(
                        CompassWorkspace.Folder(
                            id: state.workspace.nextID, name: CompassWorkspace.personal, owner: name)))
            }
        }
    }
}

extension String {
    /// The rest after a prefix; `nil` without the prefix.
    fileprivate func dropping(_ prefix: String) -> String? {
        hasPrefix(prefix) ? String(dropFirst(prefix.count)) : nil
    }
}
