import BackendConnections
import BackendProtocol
import Backends
import Essentials
import FoundationEssentials
import HTTPClient
import Model
import ObjectStore
import Postgres
import Secrets
import TestSupport
import Testing

@testable import EntrySubmitter
@testable import KeyedWorker

/// Decisions of the handler about observed records in PostgreSQL.
@Suite(.ownThreads) struct ObservingTests {
    private let id = UUID()
    private let ana: RealmPath
    private let seen: RealmPath

    init() throws { (ana, seen) = (try .user("ana@example.com"), try .seen("ana@example.com")) }

    /// A record created elsewhere becomes an entry, its status follows the record that is read again, and the newest
    /// line of the log has it. A repeated delivery writes nothing.
    @Test func recordCreatedElsewhereIsFollowed() throws {
        var acme = try TestEnvironment()
        try acme.addPerson("ana@example.com")
        _ = try acme.realm(ana)
        try see("released", &acme)
        try expectFinished(try decide([(seen, .seenRecord, .event)], &acme))
        let entry = try #require(try entry(&acme))
        #expect(entry.backendId == "1" && entry.status == .released && entry.durationSeconds == 3_600)
        let position = try position(&acme)
        try expectFinished(try decide([(seen, .seenRecord, .event)], &acme))
        #expect(try self.position(&acme) == position)

        let moves = [("approved", EntryStatus.approved), ("released", .released), ("rejected", .rejected)]
        for (status, expected) in moves {
            try see(status, &acme)
            guard case .call(let call, _)? = try decide([(seen, .seenRecord, .event)], &acme).first else {
                Issue.record("it was not read again")
                return
            }
            let answer = call.answer(.record(record(try #require(BackendStatus(rawValue: status)))))
            try expectFinished(try decide([(seen, .seenRecord, .result(answer))], &acme))
            #expect(try self.entry(&acme)?.status == expected)
            #expect(try newestLine(&acme)?.status == expected)
        }
    }

    /// Both concern one entry and are in one batch: the entry is decided, the observation is retried.
    @Test func entryIsDecidedOncePerBatch() throws {
        var acme = try TestEnvironment()
        try acme.addPerson("ana@example.com")
        try acme.put([(id, #"{"status": "draft", "reporting": [], "timeType": "duration"}"#)], .timeEntry, into: ana)
        try see("released", &acme)
        let nexts = try decide([(seen, .seenRecord, .event), (ana, .timeEntry, .event)], &acme)
        try #require(nexts.count == 2)
        if case .deferred(_, _, .planned) = nexts[0] {} else { Issue.record("\(nexts[0])") }
        if case .finished = nexts[1] {} else { Issue.record("\(nexts[1])") }
    }

    /// The record's project reaches the catalogue later: the entry then gets its selections, without a new line in its
    /// log. Edits by its person are kept.
    @Test(arguments: [false, true]) func entryGetsSelectionsWhenResolvable(isEdited: Bool) throws {
        var acme = try TestEnvironment()
        try acme.addPerson("ana@example.com")
        let (context, root, node, catalogue) = (UUID(), UUID(), UUID(), UUID())
        try acme.put(
            [
                (
                    context,
                    #"{"name": "Project", "required": true, "sections": [{"name": "All", "rootNode": "\#(root)"}]}"#
                )
            ],
            .reportingContext, into: ana)
        try acme.put(
            [(UUID(), #"{"email": "ana@example.com", "name": "Ana", "catalogue": "\#(catalogue)"}"#)], .user, into: ana)
        try acme.put([(root, #"{"name": "Project"}"#)], .reportingTreeNode, into: .catalogue(catalogue))
        let seen = record(.released, of: "P1")
        try see(seen, &acme)
        try expectFinished(try decide([(self.seen, .seenRecord, .event)], &acme))
        #expect(try entry(&acme)?.reporting == [])
        if isEdited {
            var batch = WriteBatch(environment: acme.id)
            let key = ObjectKey(realm: try acme.realm(ana), kind: .timeEntry, id: id)
            let stored = try RealmObject.stored(key, in: acme.id, on: &acme.connection)
            try batch.patch(stored, CanonicalJSON(#"{"text": "mine"}"#), decision: 0, isEdit: true)
            _ = try batch.commit(on: &acme.connection)
        }
        try acme.put(
            [(node, #"{"name": "P1", "referenceId": "P1", "parent": "\#(root)"}"#)], .reportingTreeNode,
            into: .catalogue(catalogue))
        let line = try newestLine(&acme)
        let next = try decide([(self.seen, .seenRecord, .event)], &acme).first
        guard case .call(let call, _)? = next else {
            #expect(isEdited, "it is not read again")
            return
        }
        let answer = call.answer(.record(seen))
        try expectFinished(try decide([(self.seen, .seenRecord, .result(answer))], &acme))
        #expect(!isEdited)
        #expect(try entry(&acme)?.reporting == [ReportingSelection(context: context, node: node)])
        #expect(try newestLine(&acme) == line)
        let position = try position(&acme)
        try expectFinished(try decide([(self.seen, .seenRecord, .event)], &acme))
        #expect(try self.position(&acme) == position)
    }

    /// The initializer created it before any poll: its record is updated, and no second one created.
    @Test func deletionOfEntryFromRecordDeletesRecord() throws {
        var acme = try TestEnvironment()
        try acme.addPerson("ana@example.com")
        try acme.put(
            [(id, #"{"status": "released", "backendId": "1", "deleteRequested": true, "reporting": []}"#)],
            .timeEntry, into: ana)
        guard case .call(let call, _)? = try decide([(ana, .timeEntry, .event)], &acme).first else {
            Issue.record("no call")
            return
        }
        #expect(call.submission.action == .delete(id: "1"))
    }

    // MARK: Helpers

    private func record(_ status: BackendStatus, of project: String? = nil) -> BackendEntry {
        BackendEntry(
            id: "1", marker: nil, day: Day(daysSinceEpoch: 16_000), durationSeconds: 3_600, text: "work",
            status: status, references: project.map { ["Project": $0] } ?? [:])
    }

    private func see(_ status: String, _ acme: inout TestEnvironment) throws {
        try see(record(try #require(BackendStatus(rawValue: status))), &acme)
    }

    private func see(_ record: BackendEntry, _ acme: inout TestEnvironment) throws {
        let fields = SeenRecord(record)
        let json = String(decoding: try JSONEncoder().encode(fields), as: UTF8.self)
        try acme.put([(id, json)], .seenRecord, into: seen)
    }

    private typealias Requested = (realm: RealmPath, kind: Kind, origin: WorkItem<EntryHandler.CallResult>.Origin)

    private func decide(_ asked: [Requested], _ acme: inout TestEnvironment) throws -> [Disposition<EntryHandler.Call>]
    {
        let client = Client()
        defer { client.shutDown() }
        let rule = SubmissionRule(
            lease: .seconds(70), settleMin: .seconds(30), retryMin: .seconds(1), retryMax: .seconds(60))
        var handler = EntryHandler(
            rule: rule, adapters: BackendRegistry(client: client, secrets: try SecretBox([]), callMax: patienceMax))
        let inputs = asked.map {
            WorkItem<EntryHandler.CallResult>(
                environment: acme.id, subject: EventSubject(realm: $0.realm, kind: $0.kind, id: id), origin: $0.origin,
                attemptCount: 0)
        }
        var batch = WriteBatch(environment: acme.id)
        let nexts = try handler.decide(inputs, in: acme.id, batch: &batch, on: &acme.connection)
        #expect(try batch.commit(on: &acme.connection).conflicts.isEmpty)
        return nexts
    }

    private func expectFinished(_ nexts: [Disposition<EntryHandler.Call>]) throws {
        for next in nexts { if case .finished = next {} else { Issue.record("\(next)") } }
    }

    private func entry(_ acme: inout TestEnvironment) throws -> TimeEntry? {
        let key = ObjectKey(realm: try acme.realm(ana), kind: .timeEntry, id: id)
        let objects = try RealmObject.byKey(try acme.connection.run(RealmObject.load([key], in: acme.id)))
        return try objects[key]?.decoded(as: TimeEntry.self, by: JSONDecoder())
    }

    private func newestLine(_ acme: inout TestEnvironment) throws -> TimeEntryStatus? {
        let realm = try acme.realm(ana)
        let rows = try acme.connection.run(
            RealmObject.load(kinds: [.timeEntryStatus], realm: realm, in: acme.id))
        return try RealmObject.byKey(rows).values.compactMap {
            try $0.decoded(as: TimeEntryStatus.self, by: JSONDecoder())
        }.max { $0.timestamp < $1.timestamp }
    }

    private func position(_ acme: inout TestEnvironment) throws -> Int64 {
        try acme.connection.run("SELECT position FROM realm.environment WHERE id = \(acme.id.rawValue)")[0].value(0)
    }
}
