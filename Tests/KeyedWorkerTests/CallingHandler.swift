import FoundationEssentials
import Model
import ObjectStore
import Postgres
import Synchronization

@testable import KeyedWorker

/// Controls and records of a `CallingHandler`. It simulates the back ends of several environments.
final class Calls: Sendable {
    private struct State {
        var unavailable: [EnvironmentID: String] = [:]
        var version = 0
        var revision: Int64 = 0
        var isHeld = false
        var stuckEnvironments: Set<EnvironmentID> = []
        var ends: Set<UUID> = []
        var unavailableKeys: Set<UUID> = []
        var writes: Set<UUID> = []
        var rates = CallRateLimits()
        var delays: [EnvironmentID: Duration] = [:]
        var failures: [PostgresError] = []
        var decided: [UUID: Int] = [:]
        var made: [(id: UUID, version: Int)] = []
        var requestedPause: Duration?
        var couldCall: [UUID: Bool] = [:]
    }
    private let state = Mutex(State())

    /// Environments that cannot be called, with the reason.
    var unavailable: [EnvironmentID: String] {
        get { state.withLock { $0.unavailable } }
        set { state.withLock { $0.unavailable = newValue } }
    }
    /// Version of the callers that are created.
    var version: Int {
        get { state.withLock { $0.version } }
        set { state.withLock { $0.version = newValue } }
    }
    /// Revision of the call settings that decisions read.
    var revision: Int64 {
        get { state.withLock { $0.revision } }
        set { state.withLock { $0.revision = newValue } }
    }
    /// While set, calls do not end.
    var isHeld: Bool {
        get { state.withLock { $0.isHeld } }
        set { state.withLock { $0.isHeld = newValue } }
    }
    /// Keys whose calls end nevertheless.
    var ends: Set<UUID> {
        get { state.withLock { $0.ends } }
        set { state.withLock { $0.ends = newValue } }
    }
    /// Environments whose calls do not end.
    var stuckEnvironments: Set<EnvironmentID> {
        get { state.withLock { $0.stuckEnvironments } }
        set { state.withLock { $0.stuckEnvironments = newValue } }
    }
    /// Keys whose calls find the other system unavailable.
    var unavailableKeys: Set<UUID> {
        get { state.withLock { $0.unavailableKeys } }
        set { state.withLock { $0.unavailableKeys = newValue } }
    }
    /// Pause that every call is requested to make.
    var requestedPause: Duration? {
        get { state.withLock { $0.requestedPause } }
        set { state.withLock { $0.requestedPause = newValue } }
    }
    /// Whether another call could have been made when a key's result was decided.
    var couldCall: [UUID: Bool] {
        get { state.withLock { $0.couldCall } }
        set { state.withLock { $0.couldCall = newValue } }
    }
    /// Keys whose calls write.
    var writes: Set<UUID> {
        get { state.withLock { $0.writes } }
        set { state.withLock { $0.writes = newValue } }
    }
    /// Rate limits of calls.
    var rates: CallRateLimits {
        get { state.withLock { $0.rates } }
        set { state.withLock { $0.rates = newValue } }
    }
    /// Duration of an environment's calls.
    var delays: [EnvironmentID: Duration] {
        get { state.withLock { $0.delays } }
        set { state.withLock { $0.delays = newValue } }
    }
    /// Number of decisions of each key without a result.
    var decided: [UUID: Int] { state.withLock { $0.decided } }
    var made: [(id: UUID, version: Int)] { state.withLock { $0.made } }

    /// Errors that the next decisions throw, in this order; `nil`: none.
    func fail(_ errors: [PostgresError?]) {
        state.withLock { $0.failures = errors.map { $0 ?? PostgresError(sqlState: "00000", message: "passes") } }
    }
    func throwNextFailure() throws(PostgresError) {
        let error = state.withLock { $0.failures.isEmpty ? nil : $0.failures.removeFirst() }
        if let error, error.sqlState != "00000" { throw error }
    }
    func decide(_ id: UUID) { state.withLock { $0.decided[id, default: 0] += 1 } }
    func make(_ id: UUID, _ version: Int, _ environment: EnvironmentID) async {
        state.withLock { $0.made.append((id, version)) }
        if let delay = delays[environment] { try? await Task.sleep(for: delay) }
        while isHeld && !ends.contains(id) || stuckEnvironments.contains(environment) {
            try? await Task.sleep(for: .milliseconds(5))
        }
    }
}

/// Calls for each key, and records the state in the object.
struct CallingHandler: Handler {
    let calls: Calls
    private var directory = RealmDirectory()

    init(_ calls: Calls) { self.calls = calls }

    mutating func decide(
        _ inputs: [WorkItem<UUID>], in environment: EnvironmentID, batch: inout WriteBatch,
        on connection: inout Connection
    ) throws -> [Disposition<UUID>] {
        try calls.throwNextFailure()
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
            case .result where calls.requestedPause != nil:
                let wait = calls.requestedPause ?? .zero
                return .deferred(reason: "busy", after: wait, cause: .retryAfter(wait))
            case .result(let id) where calls.unavailableKeys.contains(id):
                return .deferred(reason: "unavailable", after: .zero, cause: .backendUnavailable)
            case .result(let id):
                calls.couldCall[id] = input.canCall
                try set("done")
                return .finished
            }
        }
    }

    func callerRevision(of environment: EnvironmentID) -> Int64 { calls.revision }

    func kind(of call: UUID) -> CallKind { calls.writes.contains(call) ? .write : .read }

    func rates(on connection: inout Connection, for environment: EnvironmentID) throws -> CallRateLimits { calls.rates }

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
