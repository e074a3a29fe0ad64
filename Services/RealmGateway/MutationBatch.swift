import FoundationEssentials
import Model
import Postgres
import Realms

/// Several people's requests that share a transaction; at most one of each client.
struct MutationBatch: Sendable {
    /// Decisions made again because somebody else was faster; then the device is told to come again.
    static let roundsMax = 8

    enum Outcome: Sendable {
        case gap(expected: Int64)
        /// One answer per mutation, and the sequence of the client's next new one.
        case answers([MutationAnswer], next: Int64)
        /// Others were faster in every round.
        case contended
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
    private func decide(_ requests: [MutationRequest], on connection: inout Connection) throws -> [Outcome] {
        let paths = Set(requests.map(\.person.realm))
        let byPath = try numbers.numbers(of: Array(paths), in: store.environment, on: &connection)
        var realms: [Int32: Int32] = [:]
        for request in requests { realms[request.person.id] = byPath[request.person.realm] }
        let loaded = try store.load(requests, realms: realms, on: &connection)
        let plan = MutationPlan(requests, loaded)
        let work = MutationWork(requests: requests, plan: plan, loaded: loaded, realms: realms)
        let outcome = try work.batch(store).commit(on: &connection)
        return work.outcomes(outcome)
    }
}

extension MutationRequest {
    fileprivate func with(_ mutations: some Sequence<SubmittedMutation>) -> MutationRequest {
        MutationRequest(person: person, clientID: clientID, traceparent: traceparent, mutations: Array(mutations))
    }
}
