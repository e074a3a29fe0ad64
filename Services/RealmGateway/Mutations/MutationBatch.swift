import Access
import Essentials
import FoundationEssentials
import Identity
import Model
import ObjectStore
import Postgres

/// Several callers' requests that share a transaction: at most one of each client, and one caller for each
/// object.
struct MutationBatch: Sendable {
    /// Decisions made again because somebody else was faster; then the device is told to come again.
    static let roundsMax = 8

    enum Outcome: Sendable {
        case gap(expected: Int64)
        /// One answer per mutation, and the sequence of the client's next new one.
        case answers([MutationAnswer], next: Int64)
        /// Others were faster in every round.
        case contended
        /// The integration is no more.
        case removed
    }

    let store: MutationStore
    let numbers: RealmNumbers

    /// Decides and commits the requests, one outcome each.
    ///
    /// A value that PostgreSQL refuses rejects the mutation it is part of: the batch is halved until that one is found.
    func run(_ requests: [MutationRequest], on connection: inout Connection) throws -> [Outcome] {
        do {
            return try attempt(requests, on: &connection)
        } catch let error as PostgresError where error.isDataError {
            if requests.count > 1 {
                let middle = requests.count / 2
                return try run(Array(requests[..<middle]), on: &connection)
                    + run(Array(requests[middle...]), on: &connection)
            }
            return [try halve(requests[0], error, on: &connection)]
        }
    }

    private func halve(
        _ request: MutationRequest, _ error: PostgresError, on connection: inout Connection
    ) throws -> Outcome {
        let count = request.mutations.count
        if count == 1 {
            let rejection = Rejection("data-refused", "the database refuses this value: \(error.message)")
            let refused = SubmittedMutation(sequence: request.mutations[0].sequence, intent: .refused(rejection))
            return try attempt([request.with([refused])], on: &connection)[0]
        }
        let first = try run([request.with(request.mutations[..<(count / 2)])], on: &connection)[0]
        guard case .answers(let before, _) = first else { return first }
        let second = try run([request.with(request.mutations[(count / 2)...])], on: &connection)[0]
        guard case .answers(let after, let next) = second else { return second }
        return .answers(before + after, next: next)
    }

    private func attempt(_ requests: [MutationRequest], on connection: inout Connection) throws -> [Outcome] {
        var outcomes = [Outcome](repeating: .contended, count: requests.count)
        var open = Array(requests.indices)
        for _ in 0..<Self.roundsMax where !open.isEmpty {
            let round = open.map { requests[$0] }
            do {
                for (place, outcome) in zip(open, try decide(round, on: &connection)) { outcomes[place] = outcome }
            } catch let error as PostgresError where error.isRetriable {
                // Whether it was committed is not known. The sequences tell in the next round.
                guard error.isConnectionLost || error.sqlState?.hasPrefix("40") == true else { throw error }
            }
            open = open.filter { if case .contended = outcomes[$0] { true } else { false } }
        }
        return outcomes
    }

    /// One round: load, decide, commit. What missed is `contended`.
    private func decide(_ all: [MutationRequest], on connection: inout Connection) throws -> [Outcome] {
        let access = try access(of: all, on: &connection)
        let requests = all.filter { access[$0.caller]?.isRemoved != true }
        var realms = try numbers.numbers(
            of: Self.permitted(requests, access), in: store.environment, create: false, on: &connection)
        var loaded = try store.load(requests, realms: realms, on: &connection)
        loaded.access = access
        let plan = MutationPlan(requests, loaded, now: .now)
        let new = plan.written.filter { realms[$0] == nil }
        if !new.isEmpty {
            let made = try numbers.numbers(of: new, in: store.environment, create: true, on: &connection)
            realms.merge(made) { old, _ in old }
        }
        let work = MutationWork(requests: requests, plan: plan, loaded: loaded, realms: realms)
        let outcome = try work.batch(store).commit(on: &connection)
        var outcomes = work.outcomes(outcome)[...]
        return all.map { access[$0.caller]?.isRemoved == true ? .removed : outcomes.removeFirst() }
    }

    /// What those may do who want to write beyond their own realm.
    private func access(
        of requests: [MutationRequest], on connection: inout Connection
    ) throws -> [Caller: AccessState] {
        let callers = Dictionary(
            grouping: requests.filter { $0.isBeyondOwn || $0.caller.object == nil }, by: \.caller)
        if callers.isEmpty { return [:] }
        var readers: [AccessReader] = []
        for (caller, requests) in callers {
            let named = requests.reduce(into: Set<RealmPath>()) { $0.formUnion($1.realms) }
            readers.append(try AccessReader(caller, named: Array(named), numbers, on: &connection))
        }
        let answers = try connection.run(readers.flatMap(\.statements))
        var access: [Caller: AccessState] = [:]
        for (index, reader) in readers.enumerated() {
            access[reader.caller] = try reader.state(answers[(2 * index)..<(2 * index + 2)])
        }
        return access
    }

    /// The realms that are looked at. One that is not there has no objects; it is made once something is written.
    private static func permitted(_ requests: [MutationRequest], _ access: [Caller: AccessState]) -> [RealmPath] {
        var paths: Set<RealmPath> = access.isEmpty ? [] : [.common]
        for request in requests {
            let state = access[request.caller] ?? AccessState(request.caller)
            for case .change(let path, let change) in request.mutations.map(\.intent) {
                if state.isPermitted(path) { paths.insert(path) }
                if change.hasRequiredReferences { paths.insert(.common) }
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
