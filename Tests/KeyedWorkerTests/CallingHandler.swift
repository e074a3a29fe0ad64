import FoundationEssentials
import Model
import ObjectStore
import Postgres
import Synchronization

@testable import KeyedWorker

/// What a `CallingHandler` does, and what it has done. It stands for the back ends of several environments.
final class Calls: Sendable {
    private struct State {
        var unavailable: [EnvironmentID: String] = [:]
        var version = 0
        var revision: Int64 = 0
        var isHeld = false
        var heldEnvironments: Set<EnvironmentID> = []
        var ends: Set<UUID> = []
        var away: Set<UUID> = []
        var writes: Set<UUID> = []
        var rates = CallRates()
        var delays: [EnvironmentID: Duration] = [:]
        var failures: [PostgresError] = []
        var decided: [UUID: Int] = [:]
        var made: [(id: UUID, version: Int)] = []
        var askedWait: Duration?
        var couldCall: [UUID: Bool] = [:]
    }
    private let state = Mutex(State())

    /// Environments that cannot be called, with the reason.
    var unavailable: [EnvironmentID: String] {
        get { state.withLock { $0.unavailable } }
        set { state.withLock { $0.unavailable = newValue } }
    }
    /// Which callers are made.
    var version: Int {
        get { state.withLock { $0.version } }
        set { state.withLock { $0.version = newValue } }
    }
    /// Which edit of how calls are made decisions see.
    var revision: Int64 {
        get { state.withLock { $0.revision } }
        set { state.withLock { $0.revision = newValue } }
    }
    /// Calls do not end while it is set.
    var isHeld: Bool {
        get { state.withLock { $0.isHeld } }
        set { state.withLock { $0.isHeld = newValue } }
    }
    /// But those of these keys do.
    var ends: Set<UUID> {
        get { state.withLock { $0.ends } }
        set { state.withLock { $0.ends = newValue } }
    }
    /// Nor do those of these environments.
    var heldEnvironments: Set<EnvironmentID> {
        get { state.withLock { $0.heldEnvironments } }
        set { state.withLock { $0.heldEnvironments = newValue } }
    }
    /// Keys whose calls find the other system away.
    var away: Set<UUID> {
        get { state.withLock { $0.away } }
        set { state.withLock { $0.away = newValue } }
    }
    /// What every call is asked to wait.
    var askedWait: Duration? {
        get { state.withLock { $0.askedWait } }
        set { state.withLock { $0.askedWait = newValue } }
    }
    /// Whether another call could have been made when a key's answer was decided.
    var couldCall: [UUID: Bool] {
        get { state.withLock { $0.couldCall } }
        set { state.withLock { $0.couldCall = newValue } }
    }
    /// Keys whose calls write.
    var writes: Set<UUID> {
        get { state.withLock { $0.writes } }
        set { state.withLock { $0.writes = newValue } }
    }
    /// How fast calls may be made.
    var rates: CallRates {
        get { state.withLock { $0.rates } }
        set { state.withLock { $0.rates = newValue } }
    }
    /// How long an environment's calls take.
    var delays: [EnvironmentID: Duration] {
        get { state.withLock { $0.delays } }
        set { state.withLock { $0.delays = newValue } }
    }
    /// How often each key was decided without being an answer.
    var decided: [UUID: Int] { state.withLock { $0.decided } }
    var made: [(id: UUID, version: Int)] { state.withLock { $0.made } }

    /// What the next decisions throw, one after the other; `nil` lets one pass.
    func fail(_ errors: [PostgresError?]) {
        state.withLock { $0.failures = errors.map { $0 ?? PostgresError(sqlState: "00000", message: "passes") } }
    }
    func failIfAsked() throws(PostgresError) {
        let error = state.withLock { $0.failures.isEmpty ? nil : $0.failures.removeFirst() }
        if let error, error.sqlState != "00000" { throw error }
    }
    func decide(_ id: UUID) { state.withLock { $0.decided[id, default: 0] += 1 } }
    func make(_ id: UUID, _ version: Int, _ environment: EnvironmentID) async {
        state.withLock { $0.made.append((id, version)) }
        if let delay = delays[environment] { try? await Task.sleep(for: delay) }
        while isHeld && !ends.contains(id) || heldEnvironments.contains(environment) {
            try? await Task.sleep(for: .milliseconds(5))
        }
    }
}

/// Calls for each key, and notes in the object that it did.
struct CallingHandler: Handler {
    let calls: Calls
    private var directory = RealmDirectory()

    init(_ calls: Calls) { self.calls = calls }

    mutating func decide(
        _ inputs: [WorkItem<UUID>], in environment: EnvironmentID, batch: inout WriteBatch,
        on connection: inout Connection
    ) throws -> [Disposition<UUID>] {
        try calls.failIfAsked()
        guard let realm = try directory.id(of: .users, in: environment, create: true, on: &connection) else {
            return []
        }
        let keys = inputs.map { ObjectKey(realm: realm, kind: .realms, id: $0.subject.id) }
        let objects = try RealmObject.byKey(connection.run(RealmObject.load(keys, in: environment)))
        return try inputs.enumerated().map { index, input in
            let key = keys[index]
            func set(_ state: String) throws {
                guard let object = objects[key] else { return }
                try batch.patch(object, CanonicalJSON(encoding: ["state": state]), decision: index)
            }
            switch input.origin {
            case .event, .retry:
                calls.decide(key.id)
                try set("called")
                return .call(key.id, startBefore: .now + .seconds(600))
            case .answer where calls.askedWait != nil:
                let wait = calls.askedWait ?? .zero
                return .park(reason: "busy", after: wait, cause: .askedToWait(wait))
            case .answer(let id) where calls.away.contains(id):
                return .park(reason: "away", after: .zero, cause: .backendAway)
            case .answer(let id):
                calls.couldCall[id] = input.canCall
                try set("done")
                return .finished
            }
        }
    }

    func callerRevision(of environment: EnvironmentID) -> Int64 { calls.revision }

    func kind(of call: UUID) -> CallKind { calls.writes.contains(call) ? .write : .read }

    func rates(on connection: inout Connection, for environment: EnvironmentID) throws -> CallRates { calls.rates }

    func caller(
        on connection: inout Connection, for environment: EnvironmentID
    ) throws -> @Sendable (UUID) async -> UUID {
        if let reason = calls.unavailable[environment] { throw CallerUnavailable(reason: reason) }
        let (calls, version) = (calls, calls.version)
        return { id in
            await calls.make(id, version, environment)
            return id
        }
    }
}
