import Backends
import FoundationEssentials
import Model
import Pipeline
import Postgres
import Realms

/// Initialises the realm of each person that was registered and is not initialised.
struct RealmHandler: Handler {
    struct Call: Sendable { let person: BackendPerson }

    let fetcher: RealmFetcher
    private var directory = RealmDirectory()
    private let encoder = JSONEncoder()
    private let decoder = JSONDecoder()

    init(_ fetcher: RealmFetcher) { self.fetcher = fetcher }

    mutating func decide(
        _ inputs: [Input<RealmFetcher.Found>], in environment: EnvironmentID, batch: inout WriteBatch,
        on connection: inout Connection
    ) throws -> [Next<Call>] {
        guard let users = try directory.id(of: .users, in: environment, create: false, on: &connection) else {
            return inputs.map { _ in .finished }
        }
        let keys = inputs.map { ObjectKey(realm: users, kind: .realms, id: $0.subject.id) }
        let answers = try connection.run([
            RealmObject.load(keys, in: environment), BackendConnection.exists(in: environment),
        ])
        // An environment without a back end of ours is looked after by an integration, which fills realms by itself.
        guard try answers[1][0].value(0, as: Bool.self) else { return inputs.map { _ in .finished } }
        let objects = try RealmObject.byKey(answers[0])
        var written: Set<ObjectKey> = []
        var nexts: [Next<Call>] = []
        for (index, input) in inputs.enumerated() {
            guard let object = objects[keys[index]] else {
                nexts.append(.finished)
                continue
            }
            batch.expect(keys[index], at: object.position, decision: index)
            let decoded: Model.Realms?
            do {
                decoded = try object.decoded(as: Model.Realms.self, by: decoder)
            } catch {
                nexts.append(.dead(reason: error.description))
                continue
            }
            guard let registration = decoded else {
                nexts.append(.finished)
                continue
            }
            switch input.origin {
            case .event, .retry:
                nexts.append(try start(registration, environment, &connection))
            case .answer(.data(let data, let records, _)):
                let contents = RealmContents(email: registration.userId, data: data, records: records)
                try fill(
                    registration, contents, keys[index], decision: index, environment, &batch, &written, &connection)
                nexts.append(.finished)
            case .answer(.failed(let error)): nexts.append(next(after: error, input.attemptCount))
            }
        }
        return nexts
    }

    func caller(
        on connection: inout Connection, for environment: EnvironmentID
    ) throws -> @Sendable (Call) async -> RealmFetcher.Found {
        let fetcher = fetcher
        do {
            let backend = try fetcher.backend(of: environment, on: &connection)
            return { call in await fetcher.fetch(call.person, from: backend) }
        } catch let error as MissingBackend {
            throw CallerUnavailable(reason: error.description)
        }
    }

    private func start(
        _ registration: Model.Realms, _ environment: EnvironmentID, _ connection: inout Connection
    ) throws -> Next<Call> {
        if registration.isInitialized { return .finished }
        let people = try BackendPerson.load([registration.userId], in: environment, on: &connection)
        guard let person = people[registration.userId] else {
            return .dead(reason: "the back end has no such person; add them to the environment's people")
        }
        return .call(Call(person: person), startBefore: .now + .seconds(600))
    }

    private func next(after error: BackendError, _ attemptCount: Int) -> Next<Call> {
        if case .refused(let messages) = error {
            return .dead(reason: "the back end refuses: \(messages.joined(separator: "; "))")
        }
        guard let retry = error.retry(afterAttempts: attemptCount) else { return .finished }
        return .park(
            reason: retry.reason, after: retry.wait, cause: retry.isAsked ? .askedToWait : .backendAway)
    }

    /// The number of no decision: nothing makes it miss.
    private static let unconditional = Int(Int32.max)

    /// All of it in the one transaction that sets the flag: a crash before leaves it false, and it is done again.
    private mutating func fill(
        _ registration: Model.Realms, _ contents: RealmContents, _ key: ObjectKey, decision: Int,
        _ environment: EnvironmentID, _ batch: inout WriteBatch, _ written: inout Set<ObjectKey>,
        _ connection: inout Connection
    ) throws {
        let paths = [registration.path, .catalogue(contents.catalogue)]
        let realms = try directory.ids(of: paths, in: environment, create: true, on: &connection)
        guard let own = realms[paths[0]], let catalogue = realms[paths[1]] else { return }
        func put(_ realm: Int32, _ kind: Kind, _ id: UUID, _ fields: some Encodable, with decision: Int) throws {
            let key = ObjectKey(realm: realm, kind: kind, id: id)
            guard written.insert(key).inserted else { return }
            batch.put(key, JSONBytes([UInt8](try encoder.encode(fields))), decision: decision)
        }
        // Another person's decision in this batch may count on the same nodes: they are written whatever misses.
        for node in contents.data.nodes {
            try put(catalogue, .reportingTreeNode, node.id, node.fields, with: Self.unconditional)
        }
        for context in contents.data.contexts {
            try put(own, .reportingContext, context.id, context.fields, with: decision)
        }
        for template in contents.data.templates {
            try put(own, .reportingTemplate, template.id, template.fields, with: decision)
        }
        for entry in contents.entries { try put(own, .timeEntry, entry.id, entry.fields, with: decision) }
        try put(own, .user, RealmContents.userID(of: registration.userId), contents.user, with: decision)
        batch.patch(key, JSONBytes(#"{"isInitialized":true}"#), decision: decision)
    }
}
