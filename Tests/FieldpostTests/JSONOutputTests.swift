import Essentials
import Foundation
import Model
import TestSupport
import Testing

/// `--json` of commands that no other test runs with it: `fieldpost` validates each output (``OutputSchema``).
@Suite(.ownThreads) struct JSONOutputTests {
    private func object(_ result: CommandResult) throws -> [String: Any] {
        try #require(try JSONSerialization.jsonObject(with: Data(result.output.utf8)) as? [String: Any], "\(result)")
    }

    @Test func topicsArePrinted() async throws {
        let counts = Dictionary(uniqueKeysWithValues: Topics.all.map { ($0.name, $0.partitions) })
        try await withMockCluster(topics: counts) { cluster in
            let name = Topics.realm.name
            func topics(_ arguments: String...) throws -> CommandResult {
                try fieldpost(["topics"] + arguments + ["--json", "--brokers", cluster.address])
            }
            #expect(try object(topics("describe", name))["declaredPartitions"] as? Int == Topics.realm.partitions)
            #expect(try topics("apply").rows().count == Topics.all.count)
            let scaling = try object(
                topics("scale", name, "--partitions", "\(Topics.realm.partitions + 1)", "--dry-run"))
            #expect(scaling["isDone"] as? Bool == false)
        }
        let environment = try TestEnvironment()
        let all = try fieldpost("topics", "republish", "--json", "--database", environment.conninfo)
        #expect(try object(all)["topics"] as? Int == Topics.all.count)
    }

    @Test func fieldsAreObjectsOfTheirTypes() throws {
        var environment = try TestEnvironment()
        let (ana, id) = (UUID(), UUID())
        try environment.letIn("ana", ana)
        let fields = #"{"latitude":55.676097,"longitude":12,"accuracy":null}"#
        try environment.put([(id, fields)], .location, into: .user("ana@example.com"))
        let rows = try fieldpost(
            "realm", "show", "/users/ANA@example.com", "--id", id.uuidString, "--json", "--database",
            environment.conninfo
        ).rows()
        let shown = try #require(rows.first?["fields"] as? [String: Any])
        #expect(shown["latitude"] as? Double == 55.676097 && shown["longitude"] as? Int == 12)
        #expect(shown["accuracy"] is NSNull && rows[0]["id"] as? String == id.text)
        let trace = try fieldpost("trace", id.text, "--no-kafka", "--json", "--database", environment.conninfo)
        #expect(try trace.rows()[0]["subject"] as? String == "/users/ana@example.com/Location/\(id.text)")
    }

    @Test func repairPrintsResults() throws {
        var environment = try TestEnvironment()
        let ana = UUID()
        try environment.letIn("ana", ana)
        try environment.put([(ana, #"{"latitude":1,"longitude":2}"#)], .location, into: .user("ana@example.com"))
        func repair(_ options: String...) throws -> CommandResult {
            try fieldpost(
                ["repair", "--settle", "0", "--wait", "0", "--only", "positions", "--json", "--database"]
                    + [environment.conninfo] + options)
        }
        let planned = try repair("--dry-run").rows()
        #expect(planned.map { $0["isRepaired"] as? Bool } == [false])
        #expect(planned.map { $0["reason"] as? String } == ["nothing was changed"])
        let row = try #require(try repair("--yes").rows().first)
        #expect((row["reason"] as? String)?.contains("location-fan-out has not processed it") == true)
        #expect((row["inconsistency"] as? [String: Any])?["id"] as? String == ana.text)
    }

    /// The validator detects what a program that reads the output would stumble over.
    @Test(arguments: [
        (#"[{"state":"differs","kind":"Note","id":"8C1F7A0E-0000-4000-8000-000000000001","fields":[]}]"#, "lower case"),
        (#"[{"state":"other","kind":"Note","id":"8c1f7a0e-0000-4000-8000-000000000001","fields":[]}]"#, "documented"),
        (#"[{"state":"differs","kind":"Note","id":"8c1f7a0e-0000-4000-8000-000000000001"}]"#, "has no fields"),
        (#"[{"state":"differs","kind":7,"id":"8c1f7a0e-0000-4000-8000-000000000001","fields":[]}]"#, "is no string"),
        (#"[{"state":"differs","kind":"Note","id":"8c1f7a0e-0000-4000-8000-000000000001","fields":{}}]"#, "no array"),
        (
            #"[{"state":"differs","kind":"Note","id":"8c1f7a0e-0000-4000-8000-000000000001","fields":[],"x":1}]"#,
            "x is not documented"
        ),
    ])
    func invalidOutputIsDetected(output: String, problem: String) throws {
        let problems = try OutputSchema().problems(of: output, as: "realm-diff")
        #expect(problems.count == 1 && problems[0].contains(problem), "\(problems)")
        #expect(try OutputSchema().name(of: ["realm", "diff", "/common", "/manager", "--json"]) == "realm-diff")
    }

    @Test(arguments: ["2026-11-26 18:00:00", "2026-11-26T18:00:00+01:00", "1764180000"])
    func timeOfOtherFormIsDetected(time: String) throws {
        let output = #"[{"number":1,"email":"ana@example.com","device":"phone","usedAt":"\#(time)"}]"#
        #expect(try !OutputSchema().problems(of: output, as: "environment-devices").isEmpty)
    }
}
