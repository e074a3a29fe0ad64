import Essentials
import Foundation
import HTTPClient
import LocalCluster
import Model
import TestSupport
import Testing

/// An environment of the kind `acme` and one of a built-in kind: Acme's own system, a device, and the executable of
/// `examples/acme-adapter`, which replaces three services and the command line.
struct AdapterFlow {
    private static let replaced: [LocalCluster.Part] = [.initializer, .submitter, .poller]
    private static let token = "flow"
    private static let variables = ["ACME_TOKEN": token]
    private static let ana = "ana@acme.example"
    /// The message of a program without the adapter.
    private static let missing =
        "environment acme has a back end of kind 'acme', but this program has adapters for sap, economic only"

    let cluster: LocalCluster
    /// The folder with a link under the name of each replaced executable.
    let executables: String
    let acmeURL: String

    /// A row of Acme's books.
    private struct Row: Codable {
        var number = 0
        var employee: String
        var day: String
        var task: Int
        var note: String
        var minutes: Int
        var isApproved = false
    }

    static func run(with executable: String) async throws {
        var options = LocalCluster.Options.quick
        options.services = LocalCluster.Part.entryServices + [.poller]
        for part in replaced { options.variables[part, default: [:]].merge(variables) { $1 } }
        try await withCluster("adapter", options) { cluster in
            let folder = cluster.folder.path + "/acme"
            try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
            for name in ["fieldpost"] + replaced.map(\.name) {
                try FileManager.default.createSymbolicLink(
                    atPath: "\(folder)/\(name)", withDestinationPath: executable)
            }
            let acme = try ClusterProcess(
                ClusterProcess.Command(
                    executable: "/usr/bin/python3",
                    arguments: [projectRoot.appendingPathComponent("examples/acme-adapter/acme.py").path, "0"],
                    environment: variables, logPath: folder + "/acme.log"))
            defer { acme.kill9() }
            try await eventually("Acme listens") { acme.logTail().hasSuffix("\n") ? nil : acme.logTail() }
            let url = acme.logTail().trimmingCharacters(in: .whitespacesAndNewlines)
            let flow = AdapterFlow(cluster: cluster, executables: folder, acmeURL: url)
            try await flow.addEnvironment()
            try await flow.expectOnlyOtherEnvironmentsServed()
            try await flow.replaceServices()
            try await flow.expectServed()
        }
    }

    private func addEnvironment() async throws {
        let people = cluster.folder.path + "/acme-people.json"
        try Data(#"[{"email": "\#(Self.ana)", "reference": {"employee": "ana"}}]"#.utf8).write(
            to: URL(filePath: people))
        let command = [
            "environment", "add", "acme", "--domain", "acme.example", "--issuer", cluster.identityURL + "/acme",
            "--audience", "fieldpost", "--jwks-url", cluster.identityURL + "/jwks", "--backend", "acme",
            "--backend-url", acmeURL, "--backend-password-variable", "ACME_TOKEN", "--people", people,
        ]
        let refused = try cluster.startCommand(command, log: "add-acme")
        #expect(await end(of: refused) == .exited(status: 2))
        #expect(refused.logTail().contains("--backend must be one of sap, economic, none, not acme"))
        try await cluster.runCommand(command, from: executables)
        try await cluster.runCommand(["environment", "invite", Self.ana, "--environment", "acme"])
    }

    /// The shipped services report the missing adapter, and serve an environment of a built-in kind.
    private func expectOnlyOtherEnvironmentsServed() async throws {
        try await eventually("the key is deferred with the reason") {
            let keys = try await cluster.runCommand(["deferred", "list", "--environment", "acme", "--json"])
            return keys.contains(Self.missing) ? nil : keys
        }
        let edit = try cluster.startCommand(["environment", "edit", "acme", "--poll-interval", "5"], log: "edit-acme")
        #expect(await end(of: edit) == .exited(status: 1))
        #expect(edit.logTail().contains(Self.missing))
        let organisation = SmallOrganisation(peopleCount: 1)
        try await organisation.load(into: cluster, invites: false)
        let other = try #require(organisation.people.first).email
        try await cluster.runCommand(["environment", "invite", other, "--environment", SmallOrganisation.environment])
        let phone = try await IntegrationPhone(cluster, other)
        try await expectTemplate(of: phone)
    }

    private func replaceServices() async throws {
        for part in Self.replaced {
            #expect(await cluster.terminate(part, within: .seconds(60)) == .exited(status: 0))
            try cluster.start(part, of: executables)
        }
        for part in Self.replaced { try await cluster.waitUntilReady(part) }
        try await cluster.runCommand(["environment", "edit", "acme", "--poll-interval", "5"], from: executables)
        try await cluster.runCommand(["deferred", "retry", "--environment", "acme", "--wait", "0"])
        // It fails, because there is no client for logins.
        let check = try cluster.startCommand(
            ["environment", "check", "acme"], log: "check-acme", from: executables, variables: Self.variables)
        _ = await end(of: check)
        let expected = "acme \(acmeURL): \(Self.ana) has 0 entries today and can report on 3 nodes"
        #expect(check.logTail().contains(expected), "\(check.logTail())")
    }

    /// A device's entry is recorded once, and a row of Acme's own arrives.
    private func expectServed() async throws {
        let phone = try await IntegrationPhone(cluster, Self.ana, issuer: "acme")
        try await expectTemplate(of: phone)
        let objects = try await phone.read()
        let template = try #require(objects.first { $0.kind == "ReportingTemplate" })
        #expect(template.fields["name"] as? String == "Work")
        let context = try #require(objects.first { $0.kind == "ReportingContext" })
        let node = try #require(objects.first { $0.fields["referenceId"] as? String == "17" })
        let today = Timestamp(millisecondsSinceEpoch: Int64(Date().timeIntervalSince1970 * 1_000)).day
        let id = UUID().text
        try await phone.write(
            "put", id,
            """
            {"reportingTemplate":"\(template.id)","entryDate":"\(today.adding(days: -1))","text":"gutter",
             "reporting":[{"context":"\(context.id)","node":"\(node.id)"}],"durationSeconds":3600,
             "submitRequested":true}
            """)
        try await eventually("the entry is released") {
            let entry = try await phone.read().first { $0.id == id }
            return entry?.fields["status"] as? String == "released" ? nil : "\(entry?.fields ?? [:])"
        }
        let rows = try await rows()
        #expect(rows.count == 1, "\(rows)")
        #expect(rows.first?.note.hasPrefix("gutter") == true && rows.first?.minutes == 60 && rows.first?.task == 17)

        let elsewhere = Row(
            employee: "ana", day: "\(today.adding(days: -2))", task: 23, note: "elsewhere", minutes: 30)
        _ = try await call("POST", Array(try JSONEncoder().encode(elsewhere)))
        try await eventually("the row of Acme has arrived") {
            let texts = try await phone.read().compactMap { $0.fields["text"] as? String }
            return texts.contains("elsewhere") ? nil : "\(texts)"
        }
        #expect(try await self.rows().count == 2)
    }

    private func expectTemplate(of phone: IntegrationPhone) async throws {
        try await eventually("\(phone.email) has a template") {
            let status = try await phone.status()
            guard status == 200 else { return "\(status)" }
            let kinds = try await phone.read().map(\.kind)
            return kinds.contains("ReportingTemplate") ? nil : "\(kinds)"
        }
    }

    private func end(of process: ClusterProcess) async -> ClusterProcess.End? {
        await onOwnThread { process.waitForEnd(within: .seconds(240)) }
    }

    private func rows() async throws -> [Row] {
        struct Rows: Decodable { let rows: [Row] }
        return try JSONDecoder().decode(Rows.self, from: try await call("GET")).rows
    }

    /// Calls Acme as Ana's browser does.
    private func call(_ method: String, _ body: [UInt8]? = nil) async throws -> Data {
        let client = Client()
        defer { client.shutDown() }
        let response = try await client.send(
            Request(
                method, acmeURL + "/employees/ana/rows", headers: [("Authorization", "Bearer " + Self.token)],
                body: body))
        try #require(response.status == 200)
        return Data(response.body)
    }
}
