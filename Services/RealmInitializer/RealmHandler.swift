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

/// A handler that initialises the realms of newly registered people.
struct RealmHandler: Handler {
    struct Call: Sendable { let person: BackendPerson }

    typealias CallResult = Result<RealmFetcher.Observation, BackendError>

    let fetcher: RealmFetcher
    private let logger: Logger
    private var reported = UnreadableRecordReporter()
    private var directory = RealmDirectory()
    private var revisions: [EnvironmentID: Int64] = [:]
    private let encoder = JSONEncoder()
    private let decoder = JSONDecoder()

    init(_ fetcher: RealmFetcher, logger: Logger) {
        self.fetcher = fetcher
        self.logger = logger
    }

    mutating func decide(
        _ inputs: [WorkItem<CallResult>], in environment: EnvironmentID, batch: inout WriteBatch,
        on connection: inout Connection
    ) throws -> [Disposition<Call>] {
        guard let users = try directory.id(of: .users, in: environment, create: false, on: &connection) else {
            return inputs.map { _ in .finished }
        }
        let keys = inputs.map { ObjectKey(realm: users, kind: .realms, id: $0.subject.id) }
        let results = try connection.run([
            RealmObject.load(keys, in: environment), BackendConfiguration.revision(in: environment),
        ])
        // Without a back end, an integration initialises the realms.
        guard let revision = try results[1].first?.decode(Int64.self) else { return inputs.map { _ in .finished } }
        revisions[environment] = revision
        let objects = try RealmObject.byKey(results[0])
        var progress = InitializationBatch()
        var dispositions: [Disposition<Call>] = []
        for (index, input) in inputs.enumerated() {
            guard let object = objects[keys[index]] else {
                dispositions.append(.finished)
                continue
            }
            batch.expect(keys[index], at: object.position, decision: index)
            let decoded: RealmRegistration?
            do {
                decoded = try object.decoded(as: RealmRegistration.self, by: decoder)
            } catch {
                dispositions.append(.deadLettered(reason: error.description))
                continue
            }
            guard let registration = decoded else {
                dispositions.append(.finished)
                continue
            }
            switch input.origin {
            case .event, .retry:
                dispositions.append(try start(registration, environment, &connection))
            case .result(.success(let observation)):
                // The poller adds unreadable records once they become readable.
                reported.report(
                    observation.data.unreadable + observation.unreadable, of: registration.userId, in: environment,
                    logger)
                try initialize(
                    registration, observation, object, decision: index, environment, &batch, &progress, &connection)
                dispositions.append(.finished)
            case .result(.failure(let error)): dispositions.append(disposition(after: error, input.attemptCount))
            }
        }
        return dispositions
    }

    func callerRevision(of environment: EnvironmentID) -> Int64 { revisions[environment] ?? 0 }

    func caller(
        on connection: inout Connection, for environment: EnvironmentID
    ) throws -> @Sendable (Call) async -> CallResult {
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
            return .deadLettered(reason: DeferralReason.unknownPerson)
        }
        return .call(Call(person: person), startBefore: .now + .seconds(600))
    }

    private func disposition(after error: BackendError, _ attemptCount: Int) -> Disposition<Call> {
        if case .refused(let messages) = error {
            return .deadLettered(reason: "the back end rejected the request: \(messages.joined(separator: "; "))")
        }
        guard let retry = error.retry(afterAttempts: attemptCount) else { return .finished }
        return .deferred(reason: retry.reason, after: retry.wait, cause: .unavailable(retryAfter: retry.retryAfter))
    }

    /// Writes the realm in the transaction that sets `isInitialized`: after a crash, the flag is unset and the key is
    /// retried.
    private mutating func initialize(
        _ registration: RealmRegistration, _ observation: RealmFetcher.Observation, _ object: RealmObject,
        decision: Int, _ environment: EnvironmentID, _ batch: inout WriteBatch, _ progress: inout InitializationBatch,
        _ connection: inout Connection
    ) throws {
        let names = try connection.run(People.loginName(of: registration.userId, in: environment))
        let contents = RealmContents(
            email: registration.userId, name: try names.first?.decode(String?.self) ?? nil, data: observation.data,
            records: observation.records, readAt: observation.readAt)
        let tree = NodeTree(observation.data.nodes)
        let catalogue = try catalogue(tree, observation.data.nodes, environment, &batch, &progress, &connection)
        let realms = try directory.ids(of: [registration.path], in: environment, create: true, on: &connection)
        guard let own = realms[registration.path] else { return }
        func put(_ kind: Kind, _ id: UUID, _ fields: some Encodable) throws {
            let key = ObjectKey(realm: own, kind: kind, id: id)
            guard progress.written.insert(key).inserted else { return }
            batch.put(key, try CanonicalJSON(encoding: fields, by: encoder), decision: decision)
        }
        for context in observation.data.contexts { try put(.reportingContext, context.id, context.fields) }
        for template in observation.data.templates { try put(.reportingTemplate, template.id, template.fields) }
        for entry in contents.entries { try put(.timeEntry, entry.id, entry.fields) }
        for line in contents.lines { try put(.timeEntryStatus, line.id, line.fields) }
        var user = contents.user
        user.catalogue = catalogue
        try put(.user, RealmContents.userID(of: registration.userId), user)
        batch.expect(
            AudienceStore.expect(
                [(catalogue, tree.digest, decision)], isThere: !progress.created.contains(catalogue), in: environment))
        batch.append(
            AudienceStore.remember(
                [
                    AudienceStore.Reading(
                        email: registration.userId, tree: tree.digest, readAt: observation.readAt,
                        catalogue: catalogue, decision: decision)
                ], in: environment))
        try batch.patch(object, try CanonicalJSON(encoding: ["isInitialized": true]), decision: decision)
    }

    /// Returns the catalogue with the tree that the person may report on; creates one if there is none.
    ///
    /// A new catalogue is a separate decision, because decisions about other people in this batch may depend on it: it
    /// is written even if those conflict. If the catalogue was changed concurrently, all of them conflict.
    private mutating func catalogue(
        _ tree: NodeTree, _ nodes: [Identified<ReportingTreeNode>], _ environment: EnvironmentID,
        _ batch: inout WriteBatch, _ progress: inout InitializationBatch, _ connection: inout Connection
    ) throws -> UUID {
        if let cached = progress.catalogues[tree.digest] { return cached }
        let results = try connection.run([AudienceStore.catalogues(of: [tree.digest], in: environment)])
        if let (_, existing) = try results[0].first?.decode(UUID.self, UUID.self) {
            progress.catalogues[tree.digest] = existing
            return existing
        }
        let catalogue = try newCatalogue(for: tree.digest, environment, &connection)
        progress.catalogues[tree.digest] = catalogue
        progress.created.insert(catalogue)
        guard let realm = try directory.id(of: .catalogue(catalogue), in: environment, create: true, on: &connection)
        else { return catalogue }
        let decision = Int(Int32.max) - progress.catalogues.count
        for node in nodes {
            let key = ObjectKey(realm: realm, kind: .reportingTreeNode, id: node.id)
            guard progress.written.insert(key).inserted else { continue }
            batch.put(key, try CanonicalJSON(encoding: node.fields, by: encoder), decision: decision)
        }
        batch.expect(AudienceStore.expect([(catalogue, tree.digest, decision)], isThere: false, in: environment))
        batch.append(AudienceStore.hold([(catalogue, tree.digest, decision)], in: environment))
        batch.append(try AudienceStore.store(tree, nodes: nodes, in: environment))
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

/// The objects and catalogues that one batch writes.
private struct InitializationBatch {
    var written: Set<ObjectKey> = []
    /// Catalogues by the digest of their tree.
    var catalogues: [UUID: UUID] = [:]
    /// Catalogues that the batch creates.
    var created: Set<UUID> = []
}
