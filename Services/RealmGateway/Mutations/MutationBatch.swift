import Access
import Essentials
import FoundationEssentials
import Identity
import Model
import ObjectStore
import Postgres

/// Several callers' requests in one transaction: at most one per client, and one caller per object.
struct MutationBatch: Sendable {
    /// Maximum number of optimistic-concurrency retries before 503.
    static let attemptsMax = 8

    enum Outcome: Sendable {
        /// A sequence is missing; nothing of the request was applied.
        case gap(expected: Int64)
        /// One result per mutation, and the client's next sequence.
        case results([MutationResult], next: Int64)
        /// Every attempt conflicted with another writer.
        case conflicted
        /// The integration was removed.
        case callerRemoved
    }

    let store: MutationStore
    let numbers: RealmNumbers

    /// Decides and commits the requests. Returns one outcome per request.
    ///
    /// A value that PostgreSQL rejects causes the rejection of its mutation only: the batch is bisected until that
    /// mutation is isolated.
    func run(_ requests: [MutationRequest], on connection: inout Connection) throws -> [Outcome] {
        do {
            return try attempt(requests, on: &connection)
        } catch let error as PostgresError where error.isDataError {
            if requests.count > 1 {
                let middle = requests.count / 2
                return try run(Array(requests[..<middle]), on: &connection)
                    + run(Array(requests[middle...]), on: &connection)
            }
            return [try bisect(requests[0], error, on: &connection)]
        }
    }

    private func bisect(
        _ request: MutationRequest, _ error: PostgresError, on connection: inout Connection
    ) throws -> Outcome {
        let count = request.mutations.count
        if count == 1 {
            let rejection = Rejection("data-refused", "the database rejects this value: \(error.message)")
            let rejected = SubmittedMutation(sequence: request.mutations[0].sequence, content: .failure(rejection))
            return try attempt([request.with([rejected])], on: &connection)[0]
        }
        let first = try run([request.with(request.mutations[..<(count / 2)])], on: &connection)[0]
        guard case .results(let before, _) = first else { return first }
        let second = try run([request.with(request.mutations[(count / 2)...])], on: &connection)[0]
        guard case .results(let after, let next) = second else { return second }
        return .results(before + after, next: next)
    }

    private func attempt(_ requests: [MutationRequest], on connection: inout Connection) throws -> [Outcome] {
        var outcomes = [Outcome](repeating: .conflicted, count: requests.count)
        var open = Array(requests.indices)
        for _ in 0..<Self.attemptsMax where !open.isEmpty {
            let pending = open.map { requests[$0] }
            do {
                for (index, outcome) in zip(open, try decide(pending, on: &connection)) { outcomes[index] = outcome }
            } catch let error as PostgresError where error.isRetriable {
                // The commit may have succeeded. The retry detects that by the clients' sequences.
                guard error.isConnectionLost || error.sqlState?.hasPrefix("40") == true else { throw error }
            }
            open = open.filter { if case .conflicted = outcomes[$0] { true } else { false } }
        }
        return outcomes
    }

    /// Loads, decides and commits once. A failed version check gives `conflicted`.
    private func decide(_ all: [MutationRequest], on connection: inout Connection) throws -> [Outcome] {
        let access = try access(of: all, on: &connection)
        let requests = all.filter { access[$0.caller]?.isRemoved != true }
        var realms = try numbers.numbers(
            of: Self.permitted(requests, access), in: store.environment, create: false, on: &connection)
        var loaded = try store.load(requests, realms: realms, on: &connection)
        loaded.access = access
        let plan = MutationPlan(requests, loaded, now: .now)
        let new = plan.writtenRealms.filter { realms[$0] == nil }
        if !new.isEmpty {
            let made = try numbers.numbers(of: new, in: store.environment, create: true, on: &connection)
            realms.merge(made) { old, _ in old }
        }
        let transaction = MutationTransaction(requests: requests, plan: plan, loaded: loaded, realms: realms)
        let outcome = try transaction.batch(store).commit(on: &connection)
        var outcomes = transaction.outcomes(outcome)[...]
        return all.map { access[$0.caller]?.isRemoved == true ? .callerRemoved : outcomes.removeFirst() }
    }

    /// Loads the permissions of the callers that write to other realms than their own.
    private func access(
        of requests: [MutationRequest], on connection: inout Connection
    ) throws -> [Caller: AccessState] {
        let callers = Dictionary(
            grouping: requests.filter { $0.writesOtherRealms || $0.caller.object == nil }, by: \.caller)
        if callers.isEmpty { return [:] }
        var readers: [AccessReader] = []
        for (caller, requests) in callers {
            let named = requests.reduce(into: Set<RealmPath>()) { $0.formUnion($1.realms) }
            readers.append(try AccessReader(caller, named: Array(named), numbers, on: &connection))
        }
        let results = try connection.run(readers.flatMap(\.statements))
        var access: [Caller: AccessState] = [:]
        for (index, reader) in readers.enumerated() {
            access[reader.caller] = try reader.state(results[(2 * index)..<(2 * index + 2)])
        }
        return access
    }

    /// Returns the realms to read. A realm that does not exist has no objects; it is created by the first write.
    private static func permitted(_ requests: [MutationRequest], _ access: [Caller: AccessState]) -> [RealmPath] {
        var paths: Set<RealmPath> = access.isEmpty ? [] : [.common]
        for request in requests {
            let state = access[request.caller] ?? AccessState(request.caller)
            for write in request.writes {
                if state.isPermitted(write.realm) { paths.insert(write.realm) }
                if write.mutation.hasRequiredReferences { paths.insert(.common) }
            }
        }
        return Array(paths)
    }
}

extension Timestamp {
    static var now: Timestamp {
        Timestamp.now()
    }
}

extension MutationRequest {
    fileprivate func with(_ mutations: some Sequence<SubmittedMutation>) -> MutationRequest {
        MutationRequest(
            caller: caller, laterEmail: laterEmail, address: address, clientID: clientID, traceparent: traceparent,
            mutations: Array(mutations))
    }
}
