import BackendConnections
import BackendProtocol
import Backends
import Catalogues
import Essentials
import FoundationEssentials
import HTTPClient
import Logging
import Model
import ObjectStore
import Postgres
import Secrets
import TestSupport
import Testing

@testable import BackendPoller
@testable import KeyedWorker

extension PollHandler.CallResult {
    /// The result of reading a person.
    init(found: RealmFetcher.Observation, position: Int64) {
        self = .person(.success(PollHandler.PersonRead(found)), position: position)
    }
}

extension PollHandler.Call {
    /// The position of the poll.
    var position: Int64 {
        switch self {
        case .person(_, let position, _): position
        case .changes(let call): call.position
        case .listing(let call): call.position
        }
    }
}

extension RealmFetcher.Observation {
    /// A result of a read at the current time.
    static func data(_ data: ReportingData, _ records: [BackendEntry], _ days: ClosedRange<Day>) -> Self {
        Self(data: data, records: records, days: days, readAt: Timestamp.now())
    }
}

extension PollHandlerTests {
    static func environment() throws -> TestEnvironment {
        var acme = try TestEnvironment()
        try acme.put(
            [(UUID(), #"{"userId": "ana@example.com", "path": "/users/ana@example.com", "isInitialized": true}"#)],
            .realms, into: .users)
        try acme.addPerson("ana@example.com")
        return acme
    }

    static func scheduler(_ acme: borrowing TestEnvironment) throws -> Scheduler {
        // The client is used only to create adapters.
        let client = Client()
        client.shutDown()
        return try Scheduler(
            conninfo: acme.conninfo, fetcher: try fetcher(client), staleMax: .seconds(600),
            logger: Logger(label: "scheduler"))
    }

    static func fetcher(_ client: Client) throws -> RealmFetcher {
        RealmFetcher(
            BackendRegistry(client: client, secrets: try SecretBox([]), callMax: patienceMax), entryDays: 1)
    }

    /// Makes the next run due.
    static func makeDue(_ acme: inout TestEnvironment) throws {
        try acme.connection.run("UPDATE poll.run SET started_at = now() - interval '1 hour'")
    }

    static func nextRun(
        _ acme: inout TestEnvironment, _ run: Int64, of person: String = "ana@example.com"
    ) throws {
        let poll = Poll(run: run, person: person, dueAt: time(run))
        let json = String(decoding: try JSONEncoder().encode(poll), as: UTF8.self)
        try acme.put([(RealmContents.pollID(of: person), json)], .poll, into: .polls)
    }

    // MARK: Decisions

    static func decide(
        _ origin: WorkItem<PollHandler.CallResult>.Origin, into batch: inout WriteBatch, _ acme: inout TestEnvironment,
        of person: String = "ana@example.com"
    ) throws -> Disposition<PollHandler.Call> {
        let client = Client()
        defer { client.shutDown() }
        var handler = try handler(client)
        return try decide(origin, by: &handler, into: &batch, &acme, of: person)
    }

    static func handler(_ client: Client) throws -> PollHandler {
        PollHandler(try fetcher(client), logger: Logger(label: "poller"))
    }

    static func decide(
        _ origin: WorkItem<PollHandler.CallResult>.Origin, by handler: inout PollHandler, into batch: inout WriteBatch,
        _ acme: inout TestEnvironment, of person: String = "ana@example.com"
    ) throws -> Disposition<PollHandler.Call> {
        let subject = EventSubject(realm: .polls, kind: .poll, id: RealmContents.pollID(of: person))
        let input = WorkItem<PollHandler.CallResult>(
            environment: acme.id, subject: subject, origin: origin, attemptCount: 0)
        return try #require(
            try handler.decide([input], in: acme.id, batch: &batch, on: &acme.connection).first)
    }

    static func decide(
        _ origin: WorkItem<PollHandler.CallResult>.Origin, _ acme: inout TestEnvironment,
        of person: String = "ana@example.com"
    ) throws -> Disposition<PollHandler.Call> {
        var batch = WriteBatch(environment: acme.id)
        return try decide(origin, into: &batch, &acme, of: person)
    }

    static func answer(
        _ found: Result<RealmFetcher.Observation, BackendError>, _ acme: inout TestEnvironment
    ) throws -> Disposition<PollHandler.Call> {
        guard case .call(let call, _) = try decide(.event, &acme) else { throw Missing(what: "a call") }
        return try decide(
            .result(.person(found.map { PollHandler.PersonRead($0) }, position: call.position)), &acme)
    }

    /// Returns the writes for a result.
    static func prepare(
        _ found: RealmFetcher.Observation, _ acme: inout TestEnvironment, of person: String = "ana@example.com"
    ) throws -> WriteBatch {
        guard case .call(let call, _) = try decide(.event, &acme, of: person) else { throw Missing(what: "a call") }
        var batch = WriteBatch(environment: acme.id)
        let answer = PollHandler.CallResult(found: found, position: call.position)
        guard case .finished = try decide(.result(answer), into: &batch, &acme, of: person) else {
            throw Missing(what: "an end")
        }
        return batch
    }

    static func poll(
        _ found: RealmFetcher.Observation, _ acme: inout TestEnvironment, of person: String = "ana@example.com"
    ) throws {
        let batch = try prepare(found, &acme, of: person)
        #expect(try batch.commit(on: &acme.connection).conflicts.isEmpty)
    }

    /// Reconciles catalogues.
    static func settle(_ acme: inout TestEnvironment) throws {
        var reconciler = CatalogueReconciler(logger: Logger(label: "reconciler"))
        #expect(try reconciler.settle(acme.id, since: time(0), on: &acme.connection))
    }

    struct Missing: Error { let what: String }

    // MARK: Stored state

    static func polls(_ acme: inout TestEnvironment) throws -> [Poll] {
        try objects([.poll], in: .polls, &acme).compactMap { try $0.decoded(as: Poll.self, by: JSONDecoder()) }
    }

    static func objects(_ kinds: [Kind], in path: RealmPath, _ acme: inout TestEnvironment) throws -> [RealmObject] {
        let realm = try acme.realm(path)
        let rows = try acme.connection.run(RealmObject.load(kinds: kinds, realm: realm, in: acme.id))
        return Array(try RealmObject.byKey(rows).values)
    }

    static func position(_ acme: inout TestEnvironment) throws -> Int64 {
        try acme.connection.run("SELECT position FROM realm.environment WHERE id = \(acme.id.rawValue)")[0].value(0)
    }

    /// Returns the newest position of all objects except polls.
    static func newest(_ acme: inout TestEnvironment) throws -> Int64 {
        try acme.connection.run("SELECT max(position) FROM realm.object WHERE kind <> 'Poll'")[0].value(0)
    }

    static func time(_ seconds: Int64) -> Timestamp { Timestamp(millisecondsSinceEpoch: seconds * 1_000) }

    static func entry(_ id: String) -> BackendEntry {
        BackendEntry(
            id: id, marker: nil, day: Day(daysSinceEpoch: 150), durationSeconds: 3_600, text: "work",
            status: .released, references: ["Project": "P1"])
    }

    /// - Parameter root: The name of the tree of the nodes, from which choices are made.
    static func data(_ projects: [String], below root: String? = nil) -> ReportingData {
        let namespace = RealmContents.catalogueID(for: RealmContents.userID(of: ""), number: 0)
        let context = UUID(name: "context", in: namespace)
        let top = root.map { Identified(id: UUID(name: "root", in: namespace), fields: ReportingTreeNode(name: $0)) }
        let sections = top.map { [ReportingContext.Section(name: "All", rootNode: $0.id)] } ?? []
        return ReportingData(
            nodes: [top].compactMap(\.self)
                + projects.map {
                    Identified(
                        id: UUID(name: $0, in: namespace),
                        fields: ReportingTreeNode(referenceId: $0, name: $0, parent: top?.id))
                },
            contexts: [
                Identified(
                    id: context, fields: ReportingContext(name: "Project", required: true, sections: sections))
            ],
            templates: [
                Identified(
                    id: UUID(name: "template", in: namespace),
                    fields: ReportingTemplate(name: "Work", type: "project", reportingContexts: [context]))
            ])
    }
}
