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

@testable import KeyedWorker
@testable import RealmInitializer

/// Decisions of the handler on registrations stored in PostgreSQL.
@Suite(.ownThreads) struct RealmHandlerTests {
    @Test func undecodableRegistrationIsDeadLetteredAlone() throws {
        var acme = try TestEnvironment()
        let (valid, invalid) = (UUID(), UUID())
        let objects = [
            (invalid, #"{"userId": 7, "isInitialized": false}"#),
            (valid, #"{"path": "/users/ana@example.com", "userId": "ana@example.com", "isInitialized": true}"#),
        ]
        try acme.put(objects, .realms, into: .users)

        let client = Client()
        defer { client.shutDown() }
        var handler = RealmHandler(
            RealmFetcher(
                BackendRegistry(client: client, secrets: try SecretBox([]), callMax: patienceMax), entryDays: 1),
            logger: Logger(label: "initializer"))
        let inputs = objects.map { id, _ in
            WorkItem<RealmHandler.CallResult>(
                environment: acme.id, subject: EventSubject(realm: .users, kind: .realms, id: id), origin: .event,
                attemptCount: 0)
        }
        var batch = WriteBatch(environment: acme.id)
        let dispositions = try handler.decide(inputs, in: acme.id, batch: &batch, on: &acme.connection)
        try #require(dispositions.count == 2)
        if case .deadLettered(let reason) = dispositions[0] {
            #expect(reason.contains("Realms \(invalid.text) cannot be decoded"))
        } else {
            Issue.record("\(dispositions[0])")
        }
        if case .finished = dispositions[1] {} else { Issue.record("\(dispositions[1])") }
    }

    /// The catalogue that was read, or is to be created, has other content at the commit: nothing is written, and the
    /// registration is reprocessed.
    @Test(arguments: [true, false]) func changedCatalogueIsNotAssigned(existsBefore: Bool) throws {
        var acme = try TestEnvironment()
        let (registration, tree) = (UUID(), NodeTree(Self.data.nodes))
        try acme.put(
            [
                (
                    registration,
                    #"{"path": "/users/ana@example.com", "userId": "ana@example.com", "isInitialized": false}"#
                )
            ],
            .realms, into: .users)
        let catalogue = RealmContents.catalogueID(for: tree.digest, number: 0)
        if existsBefore { try hold(catalogue, tree.digest, &acme) }
        let batch = try initialize(registration, &acme)
        if existsBefore {
            try acme.connection.run("DELETE FROM audience.catalogue")
        } else {
            try hold(catalogue, UUID(), &acme)
        }
        let outcome = try batch.commit(on: &acme.connection)
        #expect(outcome.conflicts.contains(0) && outcome.positions.isEmpty)
        // The repetition creates a catalogue with the person's tree.
        #expect(try initialize(registration, &acme).commit(on: &acme.connection).conflicts.isEmpty)
        let assigned = try acme.connection.run(
            "SELECT c.tree FROM audience.person p JOIN audience.catalogue c ON c.id = p.catalogue")
        #expect(try assigned[0].value(0) == tree.digest)
    }

    /// Imported entries have status lines too.
    @Test func importedEntriesHaveStatusLines() throws {
        var acme = try TestEnvironment()
        let registration = UUID()
        try acme.put(
            [
                (
                    registration,
                    #"{"path": "/users/ana@example.com", "userId": "ana@example.com", "isInitialized": false}"#
                )
            ],
            .realms, into: .users)
        let statuses: [BackendStatus] = [.inProcess, .released, .rejected, .approved, .recorded, .cancelled]
        let records = statuses.enumerated().map { index, status in
            BackendEntry(
                id: "\(index)", marker: nil, day: Day(daysSinceEpoch: 16_000), durationSeconds: 3_600, text: nil,
                status: status, references: [:], message: status == .rejected ? "not your project" : nil)
        }
        #expect(try initialize(registration, &acme, records).commit(on: &acme.connection).conflicts.isEmpty)
        let realm = try acme.realm(try .user("ana@example.com"))
        let objects = try RealmObject.byKey(
            try acme.connection.run(
                RealmObject.load(kinds: [.timeEntry, .timeEntryStatus], realm: realm, in: acme.id)))
        let decoder = JSONDecoder()
        let lines = try objects.filter { $0.key.kind == .timeEntryStatus }.values.compactMap {
            try $0.decoded(as: TimeEntryStatus.self, by: decoder)
        }
        let entries = objects.filter { $0.key.kind == .timeEntry }
        #expect(entries.count == 5 && lines.count == 5)
        for (key, object) in entries {
            let entry = try #require(try object.decoded(as: TimeEntry.self, by: decoder))
            let own = lines.filter { $0.entry == key.id }
            #expect(TimeEntryStatus.objection(to: own, of: entry) == nil)
            #expect(entry.createdOn == nil)
            #expect(own.first?.message == (entry.status == .rejected ? "not your project" : nil))
        }
    }

    private func hold(_ catalogue: UUID, _ tree: UUID, _ acme: inout TestEnvironment) throws {
        var batch = WriteBatch(environment: acme.id)
        batch.append(AudienceStore.hold([(catalogue, tree, 0)], in: acme.id))
        _ = try batch.commit(on: &acme.connection)
    }

    private func initialize(
        _ registration: UUID, _ acme: inout TestEnvironment, _ records: [BackendEntry] = []
    ) throws -> WriteBatch {
        let client = Client()
        defer { client.shutDown() }
        var handler = RealmHandler(
            RealmFetcher(
                BackendRegistry(client: client, secrets: try SecretBox([]), callMax: patienceMax), entryDays: 1),
            logger: Logger(label: "initializer"))
        let day = Day(daysSinceEpoch: 16_000)
        let observation = RealmFetcher.Observation(
            data: Self.data, records: records, days: day...day, readAt: Timestamp(millisecondsSinceEpoch: 0))
        let input = WorkItem<RealmHandler.CallResult>(
            environment: acme.id, subject: EventSubject(realm: .users, kind: .realms, id: registration),
            origin: .result(.success(observation)), attemptCount: 0)
        var batch = WriteBatch(environment: acme.id)
        _ = try handler.decide([input], in: acme.id, batch: &batch, on: &acme.connection)
        return batch
    }

    private static let data = ReportingData(
        nodes: [Identified(id: UUID(), fields: ReportingTreeNode(referenceId: "P1", name: "P1"))], contexts: [],
        templates: [])
}
