import Essentials
import Foundation
import Kafka
import Model
import ObjectStore
import Postgres
import TestSupport
import Testing

/// The commands for operators, with objects of a kind that the environment declares.
@Suite(.ownThreads) struct OwnKindCommandTests {
    private let conninfo: String
    private let id = UUID()

    private static let file = """
        {"kinds": {"Inspection": {"realms": ["user"], "topic": "inspections",
            "properties": {"site": {"type": "string"},
                "photo": {"references": "image", "format": "uuid", "type": "string"}},
            "required": ["site"], "permissions": [{"who": ["owner"], "may": ["create"]}]}}}
        """

    init() throws {
        conninfo = try makeFoundationDatabase()
        var connection = try Connection(conninfo)
        try EnvironmentRows(id: 1, name: "acme", provider: .init(issuer: "https://acme.example"))
            .insert(on: &connection)
        let applied = try run(["schema", "apply", "acme"], Self.file)
        #expect(applied.status == 0, "\(applied.errors)")
    }

    private func run(_ arguments: [String], _ text: String? = nil) throws -> CommandResult {
        try withFolder { folder in
            let file = folder.appending(path: "file")
            if let text { try Data(text.utf8).write(to: file) }
            return try fieldpost(
                arguments + (text == nil ? [] : [file.path]), environment: ["FIELDPOST_DATABASE_URL": conninfo])
        }
    }

    private func importObject(_ fields: String, in realm: String = "/users/ana@example.com") throws -> CommandResult {
        try run(
            ["import", "objects"],
            #"{"realm":"\#(realm)","kind":"Inspection","id":"\#(id)","fields":\#(fields)}"# + "\n")
    }

    @Test func objectIsImportedShownTracedAndChecked() throws {
        let photo = UUID()
        let imported = try importObject(#"{"site":"Roof","photo":"\#(photo)"}"#)
        #expect(imported.status == 0, "\(imported.output)\(imported.errors)")
        for (fields, realm, text) in [
            (#"{"photo":null}"#, "/users/ana@example.com", "needs 'site'"),
            (#"{"site":7}"#, "/users/ana@example.com", "/site"), (#"{"site":"x"}"#, "/common", "/users/{e-mail}"),
        ] {
            let refused = try importObject(fields, in: realm)
            #expect(refused.status == 1 && refused.errors.contains(text), "\(refused.output)\(refused.errors)")
        }
        let realm = "/users/ana@example.com"
        #expect(try run(["realm", "show", realm]).output.contains(/Inspection +1 +0/))
        for arguments in [["--kind", "Inspection"], ["--id", id.text]] {
            let shown = try run(["realm", "show", realm] + arguments).output
            #expect(shown.contains("Inspection") && shown.contains("Roof"), "\(shown)")
        }
        let refused = try run(["realm", "show", realm, "--kind", "Inspektion"])
        #expect(refused.status == 2 && refused.errors.contains("Inspection, "), "\(refused.errors)")
        #expect(try run(["realm", "diff", realm, "/common"]).errors.contains("does not exist"))
        let trace = try run(["trace", id.text])
        #expect(trace.output.contains("\(realm)/Inspection/\(id.text)"), "\(trace.output)\(trace.errors)")
        for target in ["images", "changes"] {
            let check = try run(["check", "--only", target, "--settle", "0"])
            #expect(check.status == 0, "\(check.output)\(check.errors)")
        }
        // A reference that the trigger did not write.
        var connection = try Connection(conninfo)
        #expect(try connection.run("DELETE FROM blob.reference WHERE blob_id = \(photo)").affectedCount == 1)
        let found = try run(["check", "--only", "images", "--settle", "0"])
        #expect(found.status == 1 && found.output.contains("\(realm)/Inspection/\(id.text)"), "\(found.output)")
        let repaired = try run(["repair", "--only", "images", "--settle", "0", "--yes"])
        #expect(repaired.status == 0, "\(repaired.output)\(repaired.errors)")
        #expect(
            try connection.run("SELECT blob_id FROM blob.reference").decode(UUID.self) == [photo])
    }

    @Test func topicIsListedAndCreated() async throws {
        try await withMockCluster(topics: [:]) { cluster in
            let list = try run(["topics", "list", "--brokers", cluster.address]).output
            #expect(list.contains(/own\.acme\.inspections +Inspection \(all\) +object id +12 +-/), "\(list)")
            let without = try fieldpost("topics", "list", "--brokers", cluster.address).output
            #expect(!without.contains("own.acme"))
        }
    }
}
