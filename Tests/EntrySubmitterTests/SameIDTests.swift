import BackendConnections
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

/// Devices choose ids, and an entry's id is in the back end's record: another person may use it for an entry of their
/// own.
@Suite(.ownThreads) struct SameIDTests {
    private let id = UUID()
    private let template = UUID()
    private let ana: RealmPath
    private let ben: RealmPath

    init() throws { (ana, ben) = (try RealmPath.user("ana@example.com"), try RealmPath.user("ben@example.com")) }

    /// Requests for Ben's entry with the id of Ana's released entry leave her record and her ledger unchanged.
    @Test(arguments: [#""submitRequested": true"#, #""submitRequested": true, "deleteRequested": true"#, "deleted"])
    func entryOfAnotherPersonIsUnchanged(fields: String) throws {
        var acme = try TestEnvironment()
        try addPeople(&acme)
        try addLedger(of: ana, &acme)
        let before = try ledger(&acme)
        try acme.put([(id, entry(fields == "deleted" ? #""status": "draft""# : fields))], .timeEntry, into: ben)
        if fields == "deleted" { try delete(&acme) }

        let next = try #require(try decide([ben], &acme).first)
        guard case .finished = next else {
            Issue.record("\(next)")
            return
        }
        #expect(try ledger(&acme) == before)
        let isDeleted = fields.contains("delete")
        #expect(try status(ben, &acme) == (isDeleted ? "deleted" : "invalid"))
        #expect(try messages(ben, &acme) == (isDeleted ? [] : ["This id is another person's entry; make a new entry"]))
        // A retry writes nothing more.
        let position = try position(&acme)
        let again = try #require(try decide([ben], &acme).first)
        guard case .finished = again else {
            Issue.record("\(again)")
            return
        }
        #expect(try self.position(&acme) == position)
    }

    /// Both are new and in one batch: the first one is started, the other one waits for the commit, and is then
    /// refused.
    @Test func sameIDInOneBatchIsAssignedOnce() throws {
        var acme = try TestEnvironment()
        try addPeople(&acme)
        for realm in [ana, ben] {
            try acme.put([(id, entry(#""submitRequested": true"#))], .timeEntry, into: realm)
        }
        let nexts = try decide([ana, ben], &acme)
        guard case .call = nexts[0], case .deferred(_, _, .planned) = nexts[1] else {
            Issue.record("\(nexts)")
            return
        }
        let realm = try acme.realm(ana)
        #expect(try ledger(&acme).contains(",\(realm)"))
        let later = try decide([ben], &acme)
        guard case .finished = later[0] else {
            Issue.record("\(later)")
            return
        }
        #expect(try status(ben, &acme) == "invalid")
        #expect(try status(ana, &acme) == "submitted")
    }

    /// A ledger from before ledgers had a realm, whose entry was not found, has no owner.
    @Test func ledgerWithoutRealmIsUnchanged() throws {
        var acme = try TestEnvironment()
        try addPeople(&acme)
        try addLedger(of: nil, &acme)
        let before = try ledger(&acme)
        try acme.put([(id, entry(#""submitRequested": true"#))], .timeEntry, into: ben)
        _ = try decide([ben], &acme)
        #expect(try ledger(&acme) == before)
        #expect(try status(ben, &acme) == "invalid")
    }

    private func entry(_ more: String) -> String {
        let status = more.contains("status") ? "" : #""status": "draft", "#
        return """
            {\(status)"reporting": [], "timeType": "duration", "durationSeconds": 3600, "entryDate": "2026-03-30",
             "reportingTemplate": "\(template.text)", \(more)}
            """
    }

    private func addPeople(_ acme: inout TestEnvironment) throws {
        for (email, realm) in [("ana@example.com", ana), ("ben@example.com", ben)] {
            try acme.addPerson(email)
            try acme.put(
                [(template, #"{"name": "Work", "type": "project", "reportingContexts": []}"#)], .reportingTemplate,
                into: realm)
        }
    }

    private func addLedger(of owner: RealmPath?, _ acme: inout TestEnvironment) throws {
        var realm: Int32?
        if let owner { realm = try acme.realm(owner) }
        try acme.connection.run(
            """
            INSERT INTO submission.ledger (environment_id, entry_id, realm_id, version, phase, operation, edit_position,
                lease_until, backend_id, logged_at)
            VALUES (\(acme.id.rawValue), \(id), \(realm), 3, 'settled', 'create', 1, now(), 'B-1', 1)
            """)
    }

    private func delete(_ acme: inout TestEnvironment) throws {
        var batch = WriteBatch(environment: acme.id)
        batch.delete(ObjectKey(realm: try acme.realm(ben), kind: .timeEntry, id: id), decision: 0)
        _ = try batch.commit(on: &acme.connection)
    }

    private func decide(_ realms: [RealmPath], _ acme: inout TestEnvironment) throws -> [Disposition<EntryHandler.Call>]
    {
        let client = Client()
        defer { client.shutDown() }
        var handler = EntryHandler(
            rule: SubmissionWorld.rule,
            adapters: BackendRegistry(client: client, secrets: try SecretBox([]), callMax: patienceMax))
        let inputs = realms.map { realm in
            WorkItem<EntryHandler.CallResult>(
                environment: acme.id, subject: EventSubject(realm: realm, kind: .timeEntry, id: id), origin: .event,
                attemptCount: 0)
        }
        var batch = WriteBatch(environment: acme.id)
        let nexts = try handler.decide(inputs, in: acme.id, batch: &batch, on: &acme.connection)
        #expect(try batch.commit(on: &acme.connection).conflicts.isEmpty)
        return nexts
    }

    private func ledger(_ acme: inout TestEnvironment) throws -> String {
        let rows = try acme.connection.run("SELECT l::text FROM submission.ledger l")
        #expect(rows.count == 1)
        return try rows[0].value(0)
    }

    private func status(_ path: RealmPath, _ acme: inout TestEnvironment) throws -> String {
        let realm = try acme.realm(path)
        let rows = try acme.connection.run(
            """
            SELECT coalesce(fields->>'status', 'deleted') FROM realm.object
            WHERE environment_id = \(acme.id.rawValue) AND realm_id = \(realm) AND kind = 'TimeEntry' AND id = \(id)
            """)
        return try rows[0].value(0)
    }

    private func messages(_ path: RealmPath, _ acme: inout TestEnvironment) throws -> [String] {
        let realm = try acme.realm(path)
        return try acme.connection.run(
            """
            SELECT fields->>'message' FROM realm.object
            WHERE environment_id = \(acme.id.rawValue) AND realm_id = \(realm) AND kind = 'TimeEntryStatus'
            """
        ).map { try $0.value(0) }
    }

    private func position(_ acme: inout TestEnvironment) throws -> Int64 {
        try acme.connection.run("SELECT position FROM realm.environment")[0].value(0)
    }
}
