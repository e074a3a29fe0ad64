import Access
import BackendConnections
import BackendProtocol
import Catalogues
import FoundationEssentials
import KeyedWorker
import Logging
import Model
import ObjectStore
import Postgres

/// Initialises the realm of each person that was registered and is not initialised.
struct RealmHandler: Handler {
    struct Call: Sendable { let person: BackendPerson }

    typealias Answer = Result<RealmFetcher.Observation, BackendError>

    let fetcher: RealmFetcher
    private let logger: Logger
    private var reported = ReportedRecords()
    private var directory = RealmDirectory()
    private var revisions: [EnvironmentID: Int64] = [:]
    private let encoder = JSONEncoder()
    private let decoder = JSONDecoder()

    init(_ fetcher: RealmFetcher, logger: Logger) {
        self.fetcher = fetcher
        self.logger = logger
    }

    mutating func decide(
        _ inputs: [WorkItem<Answer>], in environment: EnvironmentID, batch: inout WriteBatch,
        on connection: inout Connection
    ) throws -> [Disposition<Call>] {
        guard let users = try directory.id(of: .users, in: environment, create: false, on: &connection) else {
            return inputs.map { _ in .finished }
        }
        let keys = inputs.map { ObjectKey(realm: users, kind: .realms, id: $0.subject.id) }
        let answers = try connection.run([
            RealmObject.load(keys, in: environment), BackendConfiguration.revision(in: environment),
        ])
        // An environment without a back end of ours is looked after by an integration, which fills realms by itself.
        guard let revision = try answers[1].first?.decode(Int64.self) else { return inputs.map { _ in .finished } }
        revisions[environment] = revision
        let objects = try RealmObject.byKey(answers[0])
        var filling = Filling()
        var nexts: [Disposition<Call>] = []
        for (index, input) in inputs.enumerated() {
            guard let object = objects[keys[index]] else {
                nexts.append(.finished)
                continue
            }
            batch.expect(keys[index], at: object.position, decision: index)
            let decoded: RealmRegistration?
            do {
                decoded = try object.decoded(as: RealmRegistration.self, by: decoder)
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
            case .answer(.success(let found)):
                // What cannot be read now, the poller adds when it can be.
                reported.report(
                    found.data.unreadable + found.unreadable, of: registration.userId, in: environment, logger)
                try fill(
                    registration, found, object, decision: index, environment, &batch, &filling, &connection)
                nexts.append(.finished)
            case .answer(.failure(let error)): nexts.append(next(after: error, input.attemptCount))
            }
        }
        return nexts
    }

    func callerRevision(of environment: EnvironmentID) -> Int64 { revisions[environment] ?? 0 }

    func caller(
        on connection: inout Connection, for environment: EnvironmentID
    ) throws -> @Sendable (Call) async -> Answer {
        let fetcher = fetcher
        do {
            let backend = try fetcher.adapters.adapter(of: environment, on: &connection)
            return { call in await fetcher.fetch(call.person, from: backend) }
        } catch let error as MissingBackend {
            throw CallerUnavailable(reason: error.description)
        }
    }

    private func start(
        _ registration: RealmRegistration, _ environment: EnvironmentID, _ connection: inout Connection
    ) throws -> Disposition<Call> {
        if registration.isInitialized { return .finished }
        let people = try BackendPerson.load([registration.userId], in: environment, on: &connection)
        guard let person = people[registration.userId] else {
            return .dead(reason: ParkedReason.unknownPerson)
        }
        return .call(Call(person: person), startBefore: .now + .seconds(600))
    }

    private func next(after error: BackendError, _ attemptCount: Int) -> Disposition<Call> {
        if case .refused(let messages) = error {
            return .dead(reason: "the back end refuses: \(messages.joined(separator: "; "))")
        }
        guard let retry = error.retry(afterAttempts: attemptCount) else { return .finished }
        return .park(
            reason: retry.reason, after: retry.wait, cause: .away(askingFor: retry.asked))
    }

    /// All of it in the one transaction that sets the flag: a crash before leaves it false, and it is done again.
    private mutating func fill(
        _ registration: RealmRegistration, _ found: RealmFetcher.Observation, _ object: RealmObject, decision: Int,
        _ environment: EnvironmentID, _ batch: inout WriteBatch, _ filling: inout Filling,
        _ connection: inout Connection
    ) throws {
        let names = try connection.run(People.loginName(of: registration.userId, in: environment))
        let contents = RealmContents(
            email: registration.userId, name: try names.first?.decode(String?.self) ?? nil, data: found.data,
            records: found.records, readAt: found.readAt)
        let tree = NodeTree(found.data.nodes)
        let catalogue = try catalogue(tree, found.data.nodes, environment, &batch, &filling, &connection)
        let realms = try directory.ids(of: [registration.path], in: environment, create: true, on: &connection)
        guard let own = realms[registration.path] else { return }
        func put(_ kind: Kind, _ id: UUID, _ fields: some Encodable) throws {
            let key = ObjectKey(realm: own, kind: kind, id: id)
            guard filling.written.insert(key).inserted else { return }
            batch.put(key, try CanonicalJSON(encoding: fields, by: encoder), decision: decision)
        }
        for context in found.data.contexts { try put(.reportingContext, context.id, context.fields) }
        for template in found.data.templates { try put(.reportingTemplate, template.id, template.fields) }
        for entry in contents.entries { try put(.timeEntry, entry.id, entry.fields) }
        for line in contents.lines { try put(.timeEntryStatus, line.id, line.fields) }
        var user = contents.user
        user.catalogue = catalogue
        try put(.user, RealmContents.userID(of: registration.userId), user)
        batch.expect(
            AudienceStore.expect(
                [(catalogue, tree.digest, decision)], isThere: !filling.created.contains(catalogue), in: environment))
        batch.also(
            AudienceStore.remember(
                [
                    AudienceStore.Reading(
                        email: registration.userId, tree: tree.digest, readAt: found.readAt,
                        catalogue: catalogue, decision: decision)
                ], in: environment))
        try batch.patch(object, try CanonicalJSON(encoding: ["isInitialized": true]), decision: decision)
    }

    /// The catalogue that holds what the person may report on; a new one when there is none.
    ///
    /// A new one is a decision of its own, since another person's decision in this batch may count on it: it is
    /// written whoever else misses, unless the catalogue holds something else by now, and then all of them miss.
    private mutating func catalogue(
        _ tree: NodeTree, _ nodes: [Identified<ReportingTreeNode>], _ environment: EnvironmentID,
        _ batch: inout WriteBatch, _ filling: inout Filling, _ connection: inout Connection
    ) throws -> UUID {
        if let known = filling.catalogues[tree.digest] { return known }
        let answers = try connection.run([AudienceStore.catalogues(of: [tree.digest], in: environment)])
        if let (_, known) = try answers[0].first?.decode(UUID.self, UUID.self) {
            filling.catalogues[tree.digest] = known
            return known
        }
        let catalogue = try newCatalogue(for: tree.digest, environment, &connection)
        filling.catalogues[tree.digest] = catalogue
        filling.created.insert(catalogue)
        guard let realm = try directory.id(of: .catalogue(catalogue), in: environment, create: true, on: &connection)
        else { return catalogue }
        let decision = Int(Int32.max) - filling.catalogues.count
        for node in nodes {
            let key = ObjectKey(realm: realm, kind: .reportingTreeNode, id: node.id)
            guard filling.written.insert(key).inserted else { continue }
            batch.put(key, try CanonicalJSON(encoding: node.fields, by: encoder), decision: decision)
        }
        batch.expect(AudienceStore.expect([(catalogue, tree.digest, decision)], isThere: false, in: environment))
        batch.also(AudienceStore.hold([(catalogue, tree.digest, decision)], in: environment))
        batch.also(try AudienceStore.store(tree, nodes: nodes, in: environment))
        return catalogue
    }

    private func newCatalogue(
        for tree: UUID, _ environment: EnvironmentID, _ connection: inout Connection
    ) throws -> UUID {
        var number = 0
        while true {
            let id = RealmContents.catalogueID(for: tree, number: number)
            if try connection.run(AudienceStore.trees(of: [id], in: environment)).count == 0 { return id }
            number += 1
        }
    }
}

/// What one batch fills realms with.
private struct Filling {
    var written: Set<ObjectKey> = []
    /// By what they hold.
    var catalogues: [UUID: UUID] = [:]
    /// Those among them that it makes.
    var created: Set<UUID> = []
}
