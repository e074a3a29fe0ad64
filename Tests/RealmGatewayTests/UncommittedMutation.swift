import Access
import Essentials
import FoundationEssentials
import Model
import ObjectStore
import Postgres

@testable import RealmGateway

/// A mutation that is decided from the loaded state and not committed yet: a test changes that state in between.
struct UncommittedMutation {
    let request: MutationRequest
    private let transaction: MutationTransaction
    private let store: MutationStore
    private let numbers = RealmNumbers()

    init(
        _ mutation: Mutation, in realm: RealmPath, by caller: Caller, on connection: inout Connection
    ) throws {
        request = MutationRequest(
            caller: caller, address: "", clientID: UUID(), traceparent: nil,
            mutations: [
                SubmittedMutation(sequence: 1, content: .success(RealmMutation(realm: realm, mutation: mutation)))
            ])
        store = MutationStore(environment: caller.environment, storedResultCountMax: 10)
        let realms = try numbers.numbers(
            of: [.common, realm], in: caller.environment, create: true, on: &connection)
        var loaded = try store.load([request], realms: realms, on: &connection)
        if request.writesOtherRealms {
            loaded.access = [caller: try AccessReader(caller, numbers, on: &connection).read(on: &connection)]
        }
        transaction = MutationTransaction(
            requests: [request], plan: MutationPlan([request], loaded, now: .now()), loaded: loaded, realms: realms)
    }

    func commit(on connection: inout Connection) throws -> MutationBatch.Outcome {
        transaction.outcomes(try transaction.batch(store).commit(on: &connection))[0]
    }

    /// Decides the request from the current state, and commits.
    func retry(on connection: inout Connection) throws -> MutationBatch.Outcome {
        try MutationBatch(store: store, numbers: numbers).run([request], on: &connection)[0]
    }

    /// Returns the problem of the mutation if its commit conflicts and its retry is rejected; otherwise `nil`.
    func problemAfterConflict(on connection: inout Connection) throws -> String? {
        guard case .conflicted = try commit(on: &connection),
            case .results(let results, _) = try retry(on: &connection), case .failure(let rejection)? = results.first
        else { return nil }
        return String(decoding: rejection.problem, as: UTF8.self)
    }
}

extension GatewayFixture {
    /// Returns a person who has logged in.
    func caller(_ email: String, on connection: inout Connection) throws -> Caller {
        let row = try connection.run("SELECT id, object_id FROM access.person WHERE email = \(email)")[0]
        return .person(
            BoundPerson(
                environment: environment, id: try row.value(0), email: email, realm: try .user(email),
                object: try row.value(1)))
    }
}
