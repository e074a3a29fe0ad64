import BackendConnections
import BackendProtocol
import Backends
import Catalogues
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
@testable import RealmGateway
@testable import Sandbox

/// A person with a realm in PostgreSQL, and a running emulator of a back end. The handler decides and calls as in a
/// worker, one key at a time, and reads of the back end act as a poll.
struct BackendWorld: ~Copyable {
    enum Vendor: CaseIterable { case sap, economic }

    static let email = "ana@example.com"
    static let day = Day(daysSinceEpoch: 16_524)  // 2015-03-30

    let vendor: Vendor
    let realm: RealmPath
    let seen: RealmPath
    let person: BackendPerson
    let backend: any TimeBackend
    let url: String
    let client: Client
    private var handler: EntryHandler
    private var data = ReportingData(nodes: [], contexts: [], templates: [])
    var acme: TestEnvironment

    /// Runs `body` with a new world.
    ///
    /// - Parameter templates: The environment's template declarations.
    static func run(
        _ vendor: Vendor, templates: String? = nil, _ body: (inout BackendWorld) async throws -> Void
    ) async throws {
        let serve: @Sendable (@escaping @Sendable (Int) async -> Void) async throws -> Void
        switch vendor {
        case .sap:
            let emulator = try SAPEmulator()
            serve = { try await emulator.run(onRunning: $0) }
        case .economic:
            let emulator = try EconomicEmulator()
            serve = { try await emulator.run(onRunning: $0) }
        }
        try await withService(serve) { port in
            var world = try make(vendor, templates, "http://127.0.0.1:\(port)")
            try await world.prepare()
            try await body(&world)
            world.client.shutDown()
        }
    }

    private init(
        _ vendor: Vendor, _ url: String, _ person: BackendPerson, _ handler: EntryHandler,
        _ backend: any TimeBackend, _ client: Client, _ acme: consuming TestEnvironment
    ) throws {
        let paths = (try RealmPath.user(Self.email), try RealmPath.seen(Self.email))
        (realm, seen) = paths
        self.vendor = vendor
        self.url = url
        self.person = person
        self.handler = handler
        self.backend = backend
        self.client = client
        self.acme = acme
    }

    private static func make(_ vendor: Vendor, _ templates: String?, _ url: String) throws -> BackendWorld {
        let client = Client()
        let secrets = try SecretBox([Data((0..<32).map { UInt8($0) }).base64EncodedString()])
        let rule = SubmissionRule(
            lease: .seconds(700), settleMin: .milliseconds(50), retryMin: .milliseconds(10),
            retryMax: .milliseconds(50))
        let handler = EntryHandler(
            rule: rule, adapters: BackendRegistry(client: client, secrets: secrets, callMax: patienceMax))
        let person = BackendPerson(
            email: Self.email,
            reference: vendor == .sap
                ? [
                    "personWorkAgreementExternalId": "A1", "companyCode": "1010",
                    "businessPartnerUuid": Self.guid(1),
                ] : ["employeeNumber": "7"])
        var acme = try TestEnvironment()
        let context = SecretContext.backendPassword(acme.id)
        let password = vendor == .sap ? "sandbox" : "sandbox-app:sandbox-grant"
        try acme.setBackend(
            .init(
                kind: vendor == .sap ? "sap" : "economic", url: url,
                password: Bytea(try secrets.seal(password, at: context)), templates: templates))
        try acme.addPerson(Self.email, reference: person.reference)
        let backend = try handler.adapters.adapter(of: acme.id, on: &acme.connection)
        return try BackendWorld(vendor, url, person, handler, backend, client, acme)
    }

    private static func guid(_ number: Int) -> String { "00000000-0000-4000-8000-00000000000\(number)" }

    /// Fills the back end, and the realm as `realm-initializer` does.
    private mutating func prepare() async throws {
        try await post(
            "/sandbox/organisation",
            vendor == .sap
                ? """
                {"people": [{"personWorkAgreementExternalId": "A1", "companyCode": "1010", "name": "Ana",
                  "businessPartnerUuid": "\(Self.guid(1))"}],
                 "customers": [{"businessPartner": "1", "businessPartnerUuid": "\(Self.guid(2))", "name": "Sons"}],
                 "projects": [{"projectUuid": "\(Self.guid(3))", "project": "P1", "description": "Harbour",
                  "customerUuid": "\(Self.guid(2))", "teamMembers": ["\(Self.guid(1))"], "elements": [
                   {"projectElementUuid": "\(Self.guid(4))", "projectElement": "P1.1", "description": "Piers"}]}]}
                """
                : """
                {"employees": [{"number": 7, "name": "Ana"}], "projects": [{"number": 11, "name": "Piers"}],
                 "activities": [{"number": 1, "name": "Diving", "isAccessible": true}]}
                """)
        data = try await backend.reportingData(of: person)
        let contents = RealmContents(email: Self.email, data: data, records: [], readAt: Timestamp.now())
        func json(_ fields: some Encodable) throws -> String {
            String(decoding: try JSONEncoder().encode(fields), as: UTF8.self)
        }
        let catalogue = UUID()
        var user = contents.user
        user.catalogue = catalogue
        try acme.put(
            data.nodes.map { ($0.id, try json($0.fields)) }, .reportingTreeNode, into: .catalogue(catalogue))
        try acme.put(data.contexts.map { ($0.id, try json($0.fields)) }, .reportingContext, into: realm)
        try acme.put(data.templates.map { ($0.id, try json($0.fields)) }, .reportingTemplate, into: realm)
        try acme.put([(RealmContents.userID(of: Self.email), try json(user))], .user, into: realm)
    }

    // MARK: The back end

    var emulator: RemoteEmulator { RemoteEmulator(url: url, client: client) }

    func post(_ path: String, _ json: String) async throws { try await emulator.post(path, json) }

    func switches(_ json: String) async throws { try await post("/sandbox/switches", json) }

    /// Acts as an approver of SAP.
    func move(_ record: String, to status: String, reason: String? = nil) async throws {
        let reason = reason.map { #", "reason": "\#($0)""# } ?? ""
        try await post("/sandbox/approvals", #"{"record": "\#(record)", "status": "\#(status)"\#(reason)}"#)
    }

    func record(_ id: String) async throws -> BackendEntry {
        try #require(try await backend.readBack(id, of: person))
    }

    // MARK: The device

    /// An entry of an hour and a half that is to be submitted.
    func draft() -> TimeEntry {
        let references = vendor == .sap ? ["Accounting code": "P1.1"] : ["Project": "11", "Activity": "1"]
        return TimeEntry(
            text: "survey", reportingTemplate: data.templates.first?.id, reporting: data.selections(for: references),
            entryDate: Self.day, durationSeconds: 5_400, submitRequested: true)
    }

    mutating func put(_ id: UUID, _ entry: TimeEntry) throws {
        let json = String(decoding: try JSONEncoder().encode(entry), as: UTF8.self)
        try acme.put([(id, json)], .timeEntry, into: realm)
    }

    mutating func edit(_ id: UUID, _ change: (inout TimeEntry) -> Void) throws {
        var entry = try #require(try entry(id))
        change(&entry)
        try put(id, entry)
    }

    /// Writes as a device through the gateway's rules.
    mutating func write(_ operation: Mutation.Operation, _ id: UUID, _ fields: String) throws {
        let key = ObjectKey(realm: try acme.realm(realm), kind: .timeEntry, id: id)
        let current = try RealmObject.byKey(try acme.connection.run(RealmObject.load([key], in: acme.id)))[key]
        let object = try #require(current)
        let stored = try #require(object.fields)
        let change = try MutationRules.decide(
            Mutation(operation: operation, kind: .timeEntry, id: id, fields: Array(fields.utf8)),
            current: .live(fields: stored.bytes))
        guard case .merge(let merged) = change else {
            Issue.record("\(change)")
            return
        }
        var batch = WriteBatch(environment: acme.id)
        try batch.patch(object, CanonicalJSON(merged), decision: 0, isEdit: true)
        _ = try batch.commit(on: &acme.connection)
    }

    /// Deletes an entry as an integration may.
    mutating func tombstone(_ id: UUID) throws {
        var batch = WriteBatch(environment: acme.id)
        let key = ObjectKey(realm: try acme.realm(realm), kind: .timeEntry, id: id)
        batch.delete(key, decision: 0, isEdit: true)
        _ = try batch.commit(on: &acme.connection)
    }

    // MARK: The submitter

    /// Puts an entry and submits it.
    ///
    /// - Returns: The id of its record.
    mutating func release(_ id: UUID, _ entry: TimeEntry? = nil) async throws -> String {
        try put(id, entry ?? draft())
        try await work(id)
        let current = try #require(try self.entry(id))
        try #require(current.status == .released)
        return try #require(current.backendId)
    }

    /// Decides and calls until nothing is left to do. Its own writes are events again.
    mutating func work(_ id: UUID, _ kind: Kind = .timeEntry) async throws {
        for _ in 0..<2_000 {
            let before = try position()
            switch try await step(id, kind) {
            case .deferred: try await Task.sleep(for: .milliseconds(5))
            case .finished, .reprocess, .call, .deadLettered:
                if try position() == before { return }
            }
        }
        Issue.record("\(id) does not finish")
    }

    /// Decides and calls until the key is finished, without further events.
    mutating func settle(_ id: UUID) async throws {
        for _ in 0..<2_000 {
            guard case .deferred = try await step(id) else { return }
            try await Task.sleep(for: .milliseconds(5))
        }
        Issue.record("\(id) does not finish")
    }

    private mutating func position() throws -> Int64 {
        try acme.connection.run("SELECT position FROM realm.environment WHERE id = \(acme.id.rawValue)")[0].value(0)
    }

    /// Decides, calls, and records results until the key is finished or deferred.
    mutating func step(_ id: UUID, _ kind: Kind = .timeEntry) async throws -> Disposition<EntryHandler.Call> {
        var next = try decide(id, .event, kind)
        while true {
            switch next {
            case .call(let call, _): next = try decide(id, .result(try await make(call)), kind)
            case .reprocess: next = try decide(id, .retry, kind)
            case .finished, .deferred, .deadLettered: return next
            }
        }
    }

    /// Decides an event of an entry, and returns the writes as they are before the commit.
    mutating func uncommitted(_ id: UUID) throws -> WriteBatch {
        let subject = EventSubject(realm: realm, kind: .timeEntry, id: id)
        let input = WorkItem<EntryHandler.CallResult>(
            environment: acme.id, subject: subject, origin: .event, attemptCount: 0)
        var batch = WriteBatch(environment: acme.id)
        _ = try handler.decide([input], in: acme.id, batch: &batch, on: &acme.connection)
        return batch
    }

    mutating func decide(
        _ id: UUID, _ origin: WorkItem<EntryHandler.CallResult>.Origin, _ kind: Kind = .timeEntry
    ) throws -> Disposition<EntryHandler.Call> {
        let subject = EventSubject(realm: kind == .seenRecord ? seen : realm, kind: kind, id: id)
        let input = WorkItem(environment: acme.id, subject: subject, origin: origin, attemptCount: 0)
        var batch = WriteBatch(environment: acme.id)
        let nexts = try handler.decide([input], in: acme.id, batch: &batch, on: &acme.connection)
        #expect(try batch.commit(on: &acme.connection).conflicts.isEmpty)
        return try #require(nexts.first)
    }

    mutating func make(_ call: EntryHandler.Call) async throws -> EntryHandler.CallResult {
        await (try handler.caller(on: &acme.connection, for: acme.id))(call)
    }

    mutating func rates() throws -> CallRateLimits { try handler.rates(on: &acme.connection, for: acme.id) }

    /// Reads the back end as a poll does, and handles the observations.
    mutating func poll() async throws {
        for record in try await backend.entries(of: person, from: Self.day, through: Self.day.adding(days: 1)) {
            let id = RealmContents.entryID(of: record, of: Self.email)
            let json = String(decoding: try JSONEncoder().encode(SeenRecord(record)), as: UTF8.self)
            try acme.put([(id, json)], .seenRecord, into: seen)
            try await work(id, .seenRecord)
        }
    }

    // MARK: Stored state

    mutating func entry(_ id: UUID) throws -> TimeEntry? {
        let key = ObjectKey(realm: try acme.realm(realm), kind: .timeEntry, id: id)
        let objects = try RealmObject.byKey(try acme.connection.run(RealmObject.load([key], in: acme.id)))
        return try objects[key]?.decoded(as: TimeEntry.self, by: JSONDecoder())
    }

    /// The person's notices, the oldest first.
    mutating func notices() throws -> [Notice] {
        let rows = try acme.connection.run(
            RealmObject.load(kinds: [.notice], realm: try acme.realm(realm), in: acme.id))
        return try RealmObject.byKey(rows).values.compactMap {
            try $0.decoded(as: Notice.self, by: JSONDecoder())
        }.sorted { $0.timestamp < $1.timestamp }
    }

    /// The status log of an entry, the oldest line first.
    mutating func lines(_ id: UUID) throws -> [TimeEntryStatus] {
        let rows = try acme.connection.run(
            RealmObject.load(kinds: [.timeEntryStatus], realm: try acme.realm(realm), in: acme.id))
        return try RealmObject.byKey(rows).values.compactMap {
            try $0.decoded(as: TimeEntryStatus.self, by: JSONDecoder())
        }.filter { $0.entry == id }.sorted { $0.timestamp < $1.timestamp }
    }
}
