import BackendProtocol
import Backends
import Essentials
import Foundation
import HTTPClient
import LocalCluster
import Model
import Postgres
import TestSupport
import Testing

/// One cluster with an environment of each back end, for all scenarios: started before the first and stopped after the
/// last.
struct SharedCluster: SuiteTrait, TestScoping {
    @TaskLocal static var cluster: LocalCluster?

    @concurrent func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable @concurrent () async throws -> Void
    ) async throws {
        var options = LocalCluster.Options.quick
        options.services = LocalCluster.Part.entryServices + [.poller]
        options.emulators.append(.economic)
        try await withCluster("scenarios", options) { cluster in
            for backend in ScenarioBackend.allCases { try await backend.load(into: cluster) }
            try await Self.$cluster.withValue(cluster) { try await function() }
        }
    }
}

/// A person of one of the environments, with a phone.
struct Scenario {
    let cluster: LocalCluster
    let backend: ScenarioBackend
    let name: String
    let phone: IntegrationPhone
    let client = Client()
    let today = Timestamp(millisecondsSinceEpoch: Int64(Date().timeIntervalSince1970 * 1_000)).day

    var email: String { phone.email }
    var person: BackendPerson { BackendPerson(email: email, reference: backend.reference(name)) }

    /// A person who is not invited yet.
    init(_ backend: ScenarioBackend, _ name: String) async throws {
        self.backend = backend
        self.name = name
        cluster = try #require(SharedCluster.cluster)
        phone = try await IntegrationPhone(cluster, "\(name)@\(backend.domain)", issuer: backend.rawValue)
    }

    /// Runs `body` with a person whose realm is filled.
    static func run(
        _ backend: ScenarioBackend, _ name: String, _ body: (Scenario) async throws -> Void
    ) async throws {
        let scenario = try await Scenario(backend, name)
        defer { scenario.client.shutDown() }
        try await scenario.invite()
        try await scenario.waitUntilInitialized()
        try await body(scenario)
    }

    // MARK: The person's realm

    func invite() async throws {
        try await cluster.runCommand(["environment", "invite", email, "--environment", backend.rawValue])
    }

    /// Kinds in the person's own realm with their newest positions, and whether it is initialised; one snapshot.
    func realm() throws -> (isInitialized: Bool, kinds: [String: Int64]) {
        var connection = try Connection(cluster.conninfo)
        let rows = try connection.run(
            """
            SELECT o.kind, max(o.position), bool_or(o.fields->'isInitialized' = 'true')
            FROM realm.object o
            JOIN realm.realm r ON r.environment_id = o.environment_id AND r.id = o.realm_id
            WHERE NOT o.deleted
                AND (r.path = \("/users/" + email) OR r.path = '/users' AND o.fields->>'userId' = \(email))
            GROUP BY o.kind
            """)
        var kinds: [String: Int64] = [:]
        var isInitialized = false
        for row in rows {
            let kind: String = try row.value(0)
            if kind == "Realms" { isInitialized = try row.optional(2) ?? false } else { kinds[kind] = try row.value(1) }
        }
        return (isInitialized, kinds)
    }

    func waitUntilInitialized() async throws {
        try await eventually("\(email) is initialised") {
            try realm().isInitialized ? nil : "not yet"
        }
        try await eventually("the gateway has \(email)") {
            let status = try await phone.status()
            return status == 200 ? nil : "\(status)"
        }
    }

    /// Fields of an entry on a project, or on none, as JSON without its braces.
    func reporting(_ project: Int?) async throws -> String {
        let objects = try await phone.read()
        func id(_ kind: String, _ matches: (IntegrationPhone.Object) -> Bool) throws -> String {
            try #require(objects.first { $0.kind == kind && matches($0) }, "there is no such \(kind)").id
        }
        let pairs = try (project.map(backend.choice) ?? []).map { choice in
            let context = try id("ReportingContext") { $0.fields["name"] as? String == choice.context }
            let node = try id("ReportingTreeNode") {
                $0.fields["referenceId"] as? String == choice.reference && $0.realm.hasPrefix("/catalogues/")
                    && (choice.context == "Activity") == ($0.fields["name"] as? String == "Digging")
            }
            return #"{"context":"\#(context)","node":"\#(node)"}"#
        }
        let template = try id("ReportingTemplate") { _ in true }
        let day = today.adding(days: -1)
        return
            #""reportingTemplate":"\#(template)","entryDate":"\#(day)","reporting":[\#(pairs.joined(separator: ","))]"#
    }

    /// Writes an entry, and requests its submission.
    ///
    /// - Parameter more: Additional fields.
    func submit(_ more: String = #""durationSeconds":3600"#, project: Int? = 1) async throws -> UUID {
        let id = UUID()
        let fields = try await reporting(project)
        try await phone.write("put", id.text, #"{\#(fields),\#(more),"text":"\#(name)","submitRequested":true}"#)
        return id
    }

    // MARK: Reading

    func entry(_ id: UUID) async throws -> [String: Any]? {
        try await phone.read().first { $0.id == id.text && $0.kind == "TimeEntry" }?.fields
    }

    /// The lines of an entry's log, the oldest first.
    func lines(_ id: UUID) async throws -> [(status: String, message: String?)] {
        let lines = try await phone.read().filter { $0.kind == "TimeEntryStatus" }.map(\.fields)
            .filter { $0["entry"] as? String == id.text }
        return lines.sorted { ($0["timestamp"] as? String ?? "") < ($1["timestamp"] as? String ?? "") }
            .map { ($0["status"] as? String ?? "", $0["message"] as? String) }
    }

    /// Waits for a status of the entry and of the log's newest line.
    func expect(_ id: UUID, _ status: EntryStatus) async throws {
        try await eventually("\(id.text) is \(status)") {
            let found = try await entry(id)?["status"] as? String
            let newest = try await lines(id).last
            return found == status.rawValue && newest?.status == status.rawValue
                ? nil : "\(found ?? "not there"), the log has \(newest?.status ?? "nothing")"
        }
    }

    // MARK: The back end

    func post(_ path: String, _ json: String) async throws {
        try await RemoteEmulator(url: backend.url(cluster), client: client).post(path, json)
    }

    /// The back end behaves so while `body` runs.
    func withSwitches(_ on: String, off: String, _ body: () async throws -> Void) async throws {
        try await post("/sandbox/switches", on)
        do { try await body() } catch {
            try await post("/sandbox/switches", off)
            throw error
        }
        try await post("/sandbox/switches", off)
    }

    func stats(_ name: String) async throws -> Int { try await backend.stats(cluster)[name] ?? 0 }

    /// All records that ever carried the entry's marker.
    func records(of id: UUID) async throws -> [ScenarioRecord] {
        let marker = EntryMarker.marker(of: id)
        return try await backend.records(cluster).filter { $0.note.hasSuffix(marker) }
    }

    /// The entry's record.
    func record(of id: UUID) async throws -> ScenarioRecord {
        let records = try await records(of: id)
        try #require(records.count == 1, "\(records)")
        return records[0]
    }

    /// Adds a record in the back end.
    ///
    /// - Returns: Its id.
    func createElsewhere(_ text: String) async throws -> String {
        let day = today.adding(days: -2)
        let references = Dictionary(uniqueKeysWithValues: backend.choice(1).map { ($0.context, $0.reference) })
        let submission = Submission(
            marker: "", person: person, day: day, durationSeconds: 1_800, text: text, references: references)
        switch backend {
        case .sap:
            let settings = SAPSettings(baseURL: cluster.sapURL, user: "FIELDPOST", password: LocalCluster.passwordOfSAP)
            return try await SAPBackend(settings, client: client, today: { day }).create(submission)
        case .economic:
            let settings = try #require(
                EconomicSettings(baseURL: cluster.economicURL, password: LocalCluster.tokensOfEconomic))
            return try await EconomicBackend(settings, client: client, today: { day }).create(submission)
        }
    }

    /// Moves a record as an approver, or who closes the books, does.
    func move(_ record: String, to status: EntryStatus) async throws {
        switch backend {
        case .sap:
            let code = [EntryStatus.released: "20", .approved: "30", .rejected: "40"][status] ?? ""
            try await post("/sandbox/approvals", #"{"record": "\#(record)", "status": "\#(code)"}"#)
        case .economic:
            let (isApproved, isReconciled) = (status != .released, status == .recorded)
            try await post(
                "/sandbox/entries",
                #"{"number": \#(record), "isApproved": \#(isApproved), "isReconciled": \#(isReconciled)}"#)
        }
    }

    /// The codes of the person's notices.
    func noticeCodes() async throws -> [String] {
        try await phone.read().filter { $0.kind == "Notice" }.compactMap { $0.fields["code"] as? String }.sorted()
    }

    // MARK: Services

    /// Everything is published again, and the service has read as many messages as objects were published.
    func republish(to part: LocalCluster.Part, kinds: [Kind]) async throws {
        let before = try await consumed(by: part)
        var connection = try Connection(cluster.conninfo)
        let count: Int64 = try connection.run(
            "SELECT count(*) FROM realm.object WHERE kind = ANY (\(kinds.map(\.rawValue)))")[0].value(0)
        try await cluster.restart(.broker)
        try await eventually("\(part.name) has read everything again") {
            let now = try await consumed(by: part)
            return now >= before + Double(count) ? nil : "\(now - before) of \(count)"
        }
    }

    private func consumed(by part: LocalCluster.Part) async throws -> Double {
        let response = try await client.send(Request(cluster.adminURL(part) + "/metrics"))
        let lines = String(decoding: response.body, as: UTF8.self).split(separator: "\n")
        return lines.filter { $0.hasPrefix("messaging_client_consumed_messages") }
            .compactMap { $0.split(separator: " ").last.flatMap { Double($0) } }.reduce(0, +)
    }
}
