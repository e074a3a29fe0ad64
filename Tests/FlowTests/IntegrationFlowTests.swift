import DeviceClient
import Foundation
import HTTPClient
import LocalCluster
import Model
import Postgres
import Testing

extension FlowTests {
    /// `examples/integration.py` does what the services would.
    @Test(.timeLimit(.minutes(20))) func theExampleOfAnIntegrationDoesABackEndsThreeJobs() async throws {
        try await withCluster("integration") { try await run($0) }
    }

    private func run(_ cluster: LocalCluster) async throws {
        let key = try await cluster.addIntegration()
        let command = ClusterProcess.Command(
            executable: "/usr/bin/python3",
            arguments: [projectRoot.appendingPathComponent("examples/integration.py").path],
            environment: ["GATEWAY_URL": cluster.gatewayURL, "FIELDPOST_KEY": key],
            logPath: cluster.folder.path + "/integration.log")
        var python = try ClusterProcess(command)
        defer { python.kill9() }
        try await cluster.runCommand(["environment", "invite", "--all"])

        let phone = try await IntegrationPhone(cluster, "ana@example.com")
        try await eventually("the gateway has the environment") {
            let status = try await phone.status()
            return status == 200 ? nil : "\(status)"
        }
        try await eventually("the realm is filled") {
            let objects = try await phone.read()
            if let end = python.end { return "the integration ended (\(end)): \(python.logTail())" }
            return objects.contains { $0.kind == "ReportingTreeNode" && $0.fields["name"] as? String == "Roof" }
                ? nil : "\(objects.map(\.kind))"
        }
        let (template, reporting, node) = try choices(in: try await phone.read())
        let (good, bad) = (UUID().uuidString.lowercased(), UUID().uuidString.lowercased())
        try await phone.submit(good, template + reporting)
        try await phone.submit(bad, template)
        try await eventually("both are answered") {
            let entries = try await phone.read().filter { $0.kind == "TimeEntry" }
            let statuses = Dictionary(uniqueKeysWithValues: entries.map { ($0.id, $0.fields["status"] as? String) })
            return statuses == [good: "released", bad: "invalid"] ? nil : "\(statuses) \(python.logTail())"
        }
        // The line of a status comes in a request of its own, after it.
        var answered = try await phone.read()
        try await eventually("both are in their logs") {
            answered = try await phone.read()
            let count = answered.count { $0.kind == "TimeEntryStatus" }
            return count >= 4 ? nil : "\(count) lines"
        }
        expectLog(in: answered, invalid: bad)
        // An edit of what is released already is submitted again, and each version is answered once.
        try await phone.submit(good, template + reporting, text: "wall")
        try await eventually("the edit is answered") {
            let lines = try await phone.lines(of: good)
            return lines.count == 3 ? nil : "\(lines) \(python.logTail())"
        }
        // After a restart, lines with a response are not sent again.
        let before = try await phone.lines(of: good)
        python.kill9()
        python = try ClusterProcess(command)
        let third = UUID().uuidString.lowercased()
        try await phone.submit(third, template + reporting.replacing(node, with: third))  // no such node
        try await eventually("the third is answered") {
            try await phone.lines(of: third).count == 2 ? nil : python.logTail()
        }
        let messages = try await phone.read().compactMap { $0.fields["message"] as? String }
        #expect(messages.contains("Project: the selection is not available any more"))
        #expect(try await phone.lines(of: good) == before)
        #expect(answered.first { $0.id == good }?.fields["backendId"] as? String == "B-" + good.prefix(8))
        try await expectLists(of: cluster)

        try await cluster.runCommand(["environment", "integration", "remove", "books"])
        try await eventually("its access is revoked") { python.end == nil ? "it runs" : nil }
        #expect(cluster.fallen.isEmpty, "\(cluster.fallen)")
    }

    /// Returns the JSON of an entry's template and selection, and the selected node.
    private func choices(
        in objects: [IntegrationPhone.Object]
    ) throws -> (template: String, reporting: String, node: String) {
        let template = try #require(objects.first { $0.kind == "ReportingTemplate" }?.id)
        let context = try #require(objects.first { $0.kind == "ReportingContext" }?.id)
        let node = try #require(objects.first { $0.fields["referenceId"] as? String == "P1" }?.id)
        let reporting = #""reporting":[{"context":"\#(context)","node":"\#(node)"}],"#
        return (#""reportingTemplate":"\#(template)","#, reporting, node)
    }

    private func expectLists(of cluster: LocalCluster) async throws {
        #expect(try await cluster.runCommand(["environment", "list"]).contains(" 1      1"))
        #expect(try await cluster.runCommand(["deferred", "list", "--json"]).contains("[\n\n]"))
        let audit = try await cluster.runCommand(["audit", "list"])
        #expect(audit.contains("integration.added") && audit.contains("login.bound"))
    }

    /// Checks the status lines of a released entry and of an invalid one.
    private func expectLog(in objects: [IntegrationPhone.Object], invalid: String) {
        let lines = objects.filter { $0.kind == "TimeEntryStatus" }
        let refusal = lines.first { $0.fields["status"] as? String == "invalid" }?.fields
        #expect(refusal?["entry"] as? String == invalid && refusal?["message"] as? String == "Project is missing")
        #expect(Set(lines.compactMap { $0.fields["status"] as? String }) == ["draft", "released", "invalid"])
        #expect(lines.count == 4)
    }
}

extension LocalCluster {
    /// Adds an environment without a back end, `outside`, with people of one domain, and an integration.
    ///
    /// - Returns: The integration's key.
    func addIntegration(people names: [String] = ["ana"], domain: String = "example.com") async throws -> String {
        let people = folder.path + "/people.json"
        let list = names.map { #"{"email": "\#($0)@\#(domain)", "reference": {}}"# }.joined(separator: ",")
        try Data("[\(list)]".utf8).write(to: URL(filePath: people))
        try await runCommand([
            "environment", "add", "outside", "--domain", domain, "--issuer", identityURL, "--audience",
            "fieldpost", "--jwks-url", identityURL + "/jwks", "--backend", "none", "--people", people,
        ])
        let key = try await runCommand(["environment", "integration", "add", "books"]).split(separator: "\n")
        return String(try #require(key.last))
    }
}

/// A phone that reads its realms whole, and submits entries.
struct IntegrationPhone {
    struct Object {
        let realm: String
        let kind: String
        let id: String
        let fields: [String: Any]
    }

    let cluster: LocalCluster
    let email: String
    let headers: [(name: String, value: String)]
    let client = Client()

    /// - Parameter issuer: The environment of the issuer; `nil`: the provider's own.
    init(_ cluster: LocalCluster, _ email: String, issuer: String? = nil) async throws {
        self.cluster = cluster
        self.email = email
        let introspection = try await client.send(
            Request(
                "POST", cluster.identityURL + "/sandbox/token", headers: [("Content-Type", "application/json")],
                body: Array("{\"email\":\"\(email)\"\(issuer.map { ",\"environment\":\"\($0)\"" } ?? "")}".utf8)))
        let json = try JSONSerialization.jsonObject(with: Data(introspection.body)) as? [String: Any]
        let token = try #require(json?["access_token"] as? String)
        headers = [("Authorization", "Bearer \(token)"), ("Content-Type", "application/json")]
    }

    func status() async throws -> Int {
        try await client.send(Request("GET", cluster.gatewayURL + "/v1/realms", headers: headers)).status
    }

    func read() async throws -> [Object] {
        var device = DeviceState(clientID: UUID())
        let answer = try await client.send(
            Request(
                "POST", cluster.gatewayURL + "/v1/sync", headers: headers, body: device.syncRequest(isLive: false)))
        try #require(answer.status == 200, "\(String(decoding: answer.body, as: UTF8.self))")
        for line in answer.body.split(separator: UInt8(ascii: "\n")) {
            if let line = try SyncLine.read(Array(line)) { _ = device.take(line) }
        }
        return try device.copy.contents.flatMap { realm, content in
            try content.map { id, held in
                let fields = try JSONSerialization.jsonObject(with: Data(held.fields)) as? [String: Any]
                return Object(
                    realm: realm.description, kind: id.kind.rawValue, id: id.id.uuidString.lowercased(),
                    fields: fields ?? [:])
            }
        }
    }

    /// The lines of an entry's log: status and timestamp.
    func lines(of entry: String) async throws -> [String] {
        try await read().filter { $0.fields["entry"] as? String == entry }
            .map { "\($0.fields["status"] ?? "") \($0.fields["timestamp"] ?? "")" }.sorted()
    }

    /// Uploads an image or a document.
    func upload(_ id: String, _ bytes: Data) async throws {
        let answer = try await client.send(
            Request("PUT", cluster.gatewayURL + "/v1/blobs/\(id)", headers: headers, body: Array(bytes)))
        try #require(answer.status == 201, "\(String(decoding: answer.body, as: UTF8.self))")
    }

    func submit(_ entry: String, _ fields: String, text: String = "roof") async throws {
        try await write(
            "put", entry, "{\(fields)\"text\":\"\(text)\",\"durationSeconds\":3600,\"submitRequested\":true}")
    }

    /// - Parameter fields: JSON.
    func write(_ operation: String, _ id: String, _ fields: String, kind: String = "TimeEntry") async throws {
        let body = """
            {"clientId":"\(UUID())","mutations":[{"sequence":1,"realm":"/users/\(email)","op":"\(operation)",
            "kind":"\(kind)","id":"\(id)","fields":\(fields)}]}
            """
        let answer = try await client.send(
            Request("POST", cluster.gatewayURL + "/v1/mutations", headers: headers, body: Array(body.utf8)))
        try #require(String(decoding: answer.body, as: UTF8.self).contains("accepted"))
    }
}
