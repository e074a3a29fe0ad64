import Backends
import Foundation
import HTTP
import Suite
import Testing

extension FlowTests {
    /// The second back end behind the same services: a realm is filled from it, and one entry is released and
    /// another refused.
    @Test(.timeLimit(.minutes(3))) func aDaysWorkInEconomic() async throws {
        var options = Suite.Options.quick
        options.hasEconomic = true
        let suite = try await Suite("economic", options)
        do { try await run(suite) } catch {
            await suite.stop()
            throw error
        }
        await suite.stop()
    }

    private func run(_ suite: Suite) async throws {
        let client = Client()
        defer { client.shutDown() }
        let organisation = """
            {"employees": [{"number": 7, "name": "Ana"}],
             "projects": [{"number": 11, "name": "Roof"}, {"number": 12, "name": "Cellar"}],
             "activities": [{"number": 1, "name": "Digging", "isAccessible": true},
              {"number": 2, "name": "Thatching", "isAccessible": true}],
             "projectActivities": [{"number": 1, "projectNumber": 11, "activityNumber": 2}]}
            """
        let loaded = try await client.send(
            Request("POST", suite.economicURL + "/sandbox/organisation", body: Array(organisation.utf8)))
        #expect(loaded.status == 200)
        let people = suite.folder.path + "/people.json"
        try Data(#"[{"email": "ana@example.com", "reference": {"employeeNumber": "7"}}]"#.utf8)
            .write(to: URL(filePath: people))
        try await suite.runCommand([
            "environment", "add", "books", "--domain", "example.com", "--issuer", suite.identityURL, "--audience",
            "fieldpost", "--jwks-url", suite.identityURL + "/jwks", "--backend", "economic", "--backend-url",
            suite.economicURL, "--backend-password-variable", Suite.tokensVariable, "--people", people,
        ])
        try await suite.runCommand(["environment", "invite", "--all"])

        let phone = try await IntegrationPhone(suite, "ana@example.com")
        try await eventually("the realm is filled", within: .seconds(30)) {
            guard try await phone.status() == 200 else { return "the gateway does not know the environment" }
            let names = try await phone.read().compactMap { $0.fields["name"] as? String }
            return names.contains("Thatching") && names.contains("Activity") ? nil : "\(names)"
        }
        let objects = try await phone.read()
        func reporting(_ project: String, _ activity: String) throws -> String {
            func id(_ kind: String, _ name: String) throws -> String {
                try #require(objects.first { $0.kind == kind && $0.fields["name"] as? String == name }).id
            }
            let pairs = try [("Project", project), ("Activity", activity)].map { context, node in
                #"{"context":"\#(try id("ReportingContext", context))","node":"\#(try id("ReportingTreeNode", node))"}"#
            }
            let template = try id("ReportingTemplate", "Project time registration")
            return #""reportingTemplate":"\#(template)","entryDate":"2024-03-04","reporting":["#
                + pairs.joined(separator: ",") + "],"
        }
        let (good, closed) = (UUID(), UUID())
        try await phone.submit(good.uuidString.lowercased(), reporting("Roof", "Thatching"))
        try await eventually("the entry is released", within: .seconds(30)) {
            let entry = try await phone.read().first { $0.id == good.uuidString.lowercased() }
            let found = [entry?.fields["status"] as? String, entry?.fields["backendId"] as? String]
            return found == ["released", "1"] ? nil : "\(found)"
        }
        let recorded = try await client.send(Request(suite.economicURL + "/sandbox/recorded"))
        let record = try JSONSerialization.jsonObject(with: Data(recorded.body)) as? [String: Any]
        #expect(record?["projectNumber"] as? Int == 11 && record?["activityNumber"] as? Int == 2)
        #expect(record?["numberOfHours"] as? Double == 1 && record?["employeeNumber"] as? Int == 7)
        #expect(record?["text"] as? String == "roof " + EntryMarker.marker(of: good))

        _ = try await client.send(
            Request(
                "POST", suite.economicURL + "/sandbox/switches", body: Array(#"{"lockedThrough": "2024-12-31"}"#.utf8)))
        try await phone.submit(closed.uuidString.lowercased(), reporting("Cellar", "Digging"))
        try await eventually("the other is refused in e-conomic's words", within: .seconds(30)) {
            let lines = try await phone.read().filter {
                $0.kind == "TimeEntryStatus" && $0.fields["entry"] as? String == closed.uuidString.lowercased()
            }
            let messages = lines.compactMap { $0.fields["message"] as? String }
            return messages.contains { $0.contains("closed accounting period") } ? nil : "\(messages)"
        }
        #expect(suite.fallen.isEmpty, "\(suite.fallen)")
    }
}
