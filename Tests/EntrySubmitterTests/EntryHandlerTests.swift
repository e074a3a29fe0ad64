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

/// Decisions of the handler about objects in PostgreSQL.
@Suite(.ownThreads) struct EntryHandlerTests {
    /// Each of them is dead-lettered with a reason that names the undecodable object; the valid one is processed.
    @Test func undecodableObjectIsDeadLetteredAndOthersAreProcessed() throws {
        var acme = try TestEnvironment()
        let (ana, ben) = (try RealmPath.user("ana@example.com"), try RealmPath.user("ben@example.com"))
        let (good, strange, tried, misled) = (UUID(), UUID(), UUID(), UUID())
        let template = UUID()
        let draft = #"{"status": "draft", "reporting": [], "timeType": "duration"}"#
        let desired = #"{"status": "draft", "reporting": [], "timeType": "duration", "submitRequested": true}"#
        try acme.put(
            [(good, draft), (strange, #"{"status": "dreamt", "reporting": []}"#), (tried, draft)], .timeEntry, into: ana
        )
        try acme.put([(misled, desired)], .timeEntry, into: ben)
        try acme.put([(template, #"{"name": 7}"#)], .reportingTemplate, into: ben)
        try acme.addPerson("ben@example.com")
        let realm = try acme.realm(ana)
        try acme.connection.run(
            """
            INSERT INTO submission.ledger (environment_id, entry_id, realm_id, version, phase, operation,
                edit_position, lease_until, wanted, logged_at)
            VALUES (\(acme.id.rawValue), \(tried), \(realm), 1, 'unknown', 'create', 1, now(), '{"day": "soon"}', 1)
            """)

        let client = Client()
        defer { client.shutDown() }
        var handler = EntryHandler(
            rule: Self.rule,
            adapters: BackendRegistry(client: client, secrets: try SecretBox([]), callMax: patienceMax))
        let inputs = [(good, ana), (strange, ana), (tried, ana), (misled, ben)].map { id, realm in
            Self.input(id, realm, acme.id)
        }
        var batch = WriteBatch(environment: acme.id)
        let nexts = try handler.decide(inputs, in: acme.id, batch: &batch, on: &acme.connection)
        let outcome = try batch.commit(on: &acme.connection)
        #expect(outcome.conflicts.isEmpty)
        let reasons: [String] = nexts.map { if case .deadLettered(let reason) = $0 { reason } else { "" } }
        try #require(reasons.count == 4)
        if case .finished = nexts[0] {} else { Issue.record("the valid one: \(nexts[0])") }
        #expect(reasons[1].contains("TimeEntry \(strange.text)") && reasons[1].contains("status"))
        #expect(reasons[2].contains("ledger of TimeEntry \(tried.text)") && reasons[2].contains("day"))
        #expect(reasons[3].contains("ReportingTemplate \(template.text)"))
    }

    /// The state after manual SQL; `fieldpost repair` has the entry reprocessed.
    @Test func retryAppendsMissingStatusToLog() throws {
        var acme = try TestEnvironment()
        let ana = try RealmPath.user("ana@example.com")
        let (silent, wrong, right, torn) = (UUID(), UUID(), UUID(), UUID())
        let draft = #"{"status": "draft", "reporting": [], "timeType": "duration"}"#
        try acme.put([(silent, draft), (wrong, draft), (right, draft), (torn, draft)], .timeEntry, into: ana)
        func line(_ entry: UUID, _ status: String) -> (id: UUID, json: String) {
            let time = "2126-01-01T00:00:00.000Z"
            return (UUID(), #"{"entry": "\#(entry.text)", "status": "\#(status)", "timestamp": "\#(time)"}"#)
        }
        let rest = (UUID(), #"{"entry": "\#(torn.text)"}"#)
        try acme.put([line(wrong, "released"), line(right, "draft"), rest], .timeEntryStatus, into: ana)
        let client = Client()
        defer { client.shutDown() }
        var handler = EntryHandler(
            rule: Self.rule,
            adapters: BackendRegistry(client: client, secrets: try SecretBox([]), callMax: patienceMax))
        func process(_ origin: WorkItem<EntryHandler.CallResult>.Origin) throws {
            let inputs = [silent, wrong, right, torn].map { id in
                WorkItem<EntryHandler.CallResult>(
                    environment: acme.id, subject: EventSubject(realm: ana, kind: .timeEntry, id: id), origin: origin,
                    attemptCount: 0)
            }
            var batch = WriteBatch(environment: acme.id)
            _ = try handler.decide(inputs, in: acme.id, batch: &batch, on: &acme.connection)
            #expect(try batch.commit(on: &acme.connection).conflicts.isEmpty)
        }
        func lines() throws -> [String] {
            try acme.connection.run(
                """
                SELECT fields->>'entry' || ' ' || (fields->>'status') || ' ' || (fields->>'timestamp')
                FROM realm.object WHERE kind = 'TimeEntryStatus' AND fields->>'status' IS NOT NULL ORDER BY position
                """
            ).decode(String.self)
        }
        // Events, which are frequent, do not read logs.
        try process(.event)
        #expect(try lines().count == 2)
        try process(.retry)
        let statuses = try lines()
        #expect(statuses.count == 5)
        #expect(statuses.contains { $0.hasPrefix("\(torn.text) draft ") })
        #expect(statuses.contains("\(wrong.text) draft 2126-01-01T00:00:00.001Z"))
        #expect(statuses.contains { $0.hasPrefix("\(silent.text) draft ") })
        let agree = try acme.connection.run(
            "SELECT count(*) FROM realm.object WHERE kind = 'TimeEntry' AND fields->>'statusAt' IS NOT NULL")
        #expect(try agree[0].decode(Int64.self) == 3)
        try process(.retry)
        #expect(try lines() == statuses)
    }

    /// The worker defers only calls of this environment.
    @Test func missingPasswordAffectsOnlyItsEnvironment() throws {
        var connection = try Connection(try makeFoundationDatabase())
        let environment = try EnvironmentRows().insert(on: &connection)
        let client = Client()
        defer { client.shutDown() }
        let handler = EntryHandler(
            rule: Self.rule,
            adapters: BackendRegistry(client: client, secrets: try SecretBox([]), callMax: patienceMax))
        func reason() throws -> String {
            do {
                _ = try handler.caller(on: &connection, for: environment)
                return ""
            } catch let error as CallerUnavailable {
                return error.reason
            }
        }
        let none = try reason()
        #expect(none == "environment \(environment) has no back end")
        try EnvironmentRows(backend: .init()).insert(on: &connection)
        let missing = try reason()
        #expect(missing.contains("NO_SUCH_VARIABLE"))
        try connection.run("UPDATE backend.connection SET kind = 'elsewhere'")
        let name = try connection.run("SELECT name FROM realm.environment")[0].decode(String.self)
        let unknown = try reason()
        #expect(
            unknown == "environment \(name) has a back end of kind 'elsewhere', but this program has adapters for sap, "
                + "economic only")
    }

    private static let rule = SubmissionRule(
        lease: .seconds(70), settleMin: .seconds(30), retryMin: .seconds(1), retryMax: .seconds(60))

    private static func input(_ id: UUID, _ realm: RealmPath, _ environment: EnvironmentID) -> WorkItem<
        EntryHandler.CallResult
    > {
        WorkItem(
            environment: environment, subject: EventSubject(realm: realm, kind: .timeEntry, id: id), origin: .event,
            attemptCount: 0)
    }
}
