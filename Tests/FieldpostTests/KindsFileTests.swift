import Foundation
import TestSupport
import Testing

/// `fieldpost schema validate`, `diff` and `import realm`.
@Suite(.ownThreads) struct KindsFileTests {
    private static let inspection = """
        kinds:
          Inspection:
            description: An inspection of a site.
            realms: [user, team]
            topic: inspections
            properties:
              site: {type: string, maxLength: 200}
              state: {enum: [draft, sent]}
              day: {type: [string, null], format: date}
              receipt: {type: string, format: uuid, references: image, readOnly: true}
            required: [site]
            permissions:
              - {who: [owner, member], may: [create, change, delete]}

        """

    private func run(_ files: [(name: String, text: String)], _ arguments: [String]) throws -> CommandResult {
        try withFolder { folder in
            for file in files {
                let url = folder.appending(path: file.name)
                try FileManager.default.createDirectory(
                    at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
                try Data(file.text.utf8).write(to: url)
            }
            let paths = arguments.map { $0.replacing("@", with: folder.path + "/") }
            return try runExecutable("fieldpost", ["schema"] + paths)
        }
    }

    @Test func validFileIsListed() throws {
        let result = try run([("kinds.yaml", Self.inspection)], ["validate", "@kinds.yaml"])
        #expect(result.status == 0 && result.errors.isEmpty, "\(result.errors)")
        #expect(result.output.split(separator: "\n").count == 2)
        #expect(result.output.contains(/Inspection +team, user +4 +receipt +inspections/), "\(result.output)")
    }

    @Test(arguments: [
        (inspection.replacing("maxLength", with: "maxlength"), "kinds.yaml:7: /kinds/Inspection/properties/site/maxl"),
        (inspection.replacing("format: date", with: "format: time"), "kinds.yaml:9: /kinds/Inspection/properties/day"),
        (inspection.replacing("[owner, member]", with: "[boss]"), "kinds.yaml:13: /kinds/Inspection/permissions/0/who"),
        ("kinds: [", "is neither YAML nor JSON"), ("", "is empty"), ("kinds: {A: &a {b: *c}}", "neither YAML nor JSON"),
        ("kinds: {A: 1, A: 2}", "neither YAML nor JSON"), ("{\"kinds\": []}", ":1: /kinds: must be an object"),
    ]) func problemNamesItsLine(text: String, expected: String) throws {
        let result = try run([("kinds.yaml", text)], ["validate", "@kinds.yaml"])
        #expect(result.status == 1 && result.output.isEmpty)
        #expect(result.errors.contains(expected), "\(result.errors)")
        #expect(result.errors.split(separator: "\n").last?.hasPrefix("fieldpost: ") == true)
    }

    @Test func allProblemsAreListed() throws {
        let text = Self.inspection.replacing("maxLength", with: "maxlength").replacing("enum", with: "enums")
        let result = try run([("kinds.yaml", text)], ["validate", "@kinds.yaml"])
        #expect(result.errors.split(separator: "\n").count == 3, "\(result.errors)")
        #expect(result.errors.contains("kinds.yaml has 2 problems"), "\(result.errors)")
    }

    /// In YAML 1.1, `no` would be false, and `08:30` a number of base 60.
    @Test(arguments: ["[no, 08:30, 007x]", "[-0, 2.0, 1e2, +1]"]) func valuesKeepTheirForm(list: String)
        throws
    {
        let text = Self.inspection.replacing("[draft, sent]", with: list)
        let files = [
            ("kinds.yaml", text), ("other.yaml", text.replacing("-0", with: "0").replacing("[no,", with: "[\"no\",")),
        ]
        let result = try run(files, ["diff", "@kinds.yaml", "@other.yaml"])
        #expect(result.output == "no changes\n", "\(result.output) \(result.errors)")
    }

    @Test func exampleOfTheDocumentIsValid() throws {
        let page = try String(contentsOf: projectFolder.appending(path: "docs/apps/own-kinds.md"), encoding: .utf8)
        let example = try #require(page.firstMatch(of: /```yaml\n(.+?)```/.dotMatchesNewlines())?.1)
        let result = try run([("kinds.yaml", String(example))], ["validate", "@kinds.yaml"])
        #expect(result.status == 0, "\(result.errors)")
    }

    /// YAML has no surrogates.
    @Test func fileInJSONMayHaveEscapes() throws {
        let text = #"{"kinds":{"A":{"realms":["user"],"description":"\uD83D\uDE00","properties":{"a":{}}}}}"#
        let result = try run([("kinds.json", text)], ["validate", "@kinds.json"])
        #expect(result.status == 0, "\(result.errors)")
    }

    /// Aliases that repeat each other would have 10^9 values.
    @Test func aliasesAreLimited() throws {
        let lines = (1...9).map {
            "a\($0): &a\($0) [" + Array(repeating: "*a\($0 - 1)", count: 10).joined(separator: ", ") + "]"
        }
        let text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + lines.joined(separator: "\n")
        let result = try run([("kinds.yaml", text)], ["validate", "@kinds.yaml"])
        #expect(result.status == 1 && result.errors.contains("more than 100000 values"), "\(result.errors.prefix(300))")
    }

    @Test func breakingChangeEndsWithStatusOne() throws {
        let additive = Self.inspection.replacing("[draft, sent]", with: "[draft, sent, closed]")
        let files = [("old.yaml", Self.inspection), ("new.yaml", additive)]
        let result = try run(files, ["diff", "@old.yaml", "@new.yaml"])
        #expect(result.status == 0, "\(result.errors)")
        #expect(result.output.contains(/additive +Inspection +\/state +also allows "closed"/), "\(result.output)")
        let opposite = try run(files, ["diff", "@new.yaml", "@old.yaml"])
        #expect(opposite.status == 1)
        #expect(opposite.output.contains("keep the field, and add one of another name"), "\(opposite.output)")
        #expect(try run(files, ["diff", "@old.yaml", "@old.yaml"]).output == "no changes\n")
    }

    @Test func importedSchemaIsValid() throws {
        let files = [
            (
                "app/Site/schema.json",
                #"{"title":"Site","bsonType":"object","properties":{"_id":{"bsonType":"uuid"},"name":{"bsonType":"string"}}}"#
            ),
            (
                "app/Visit/schema.json",
                #"{"title":"Visit","bsonType":"object","properties":{"site":{"bsonType":"uuid"},"x":{"bsonType":"mixed"}}}"#
            ),
            (
                "app/Visit/relationships.json",
                ##"{"site":{"ref":"#/relationship/atlas/app/Site","foreign_key":"_id"}}"##
            ),
            ("classes.json", #"[{"name":"Log","properties":{"text":"string","level":"int?"}}]"#),
        ]
        let result = try run(files, ["import", "realm", "@app", "@classes.json"])
        #expect(result.status == 0)
        #expect(result.errors.contains(/decide +Visit.x/), "\(result.errors)")
        #expect(result.output.contains("references: Site"), "\(result.output)")
        let valid = try run([("kinds.yaml", result.output)], ["validate", "@kinds.yaml"])
        #expect(valid.status == 0, "\(valid.errors)\n\(result.output)")
        for name in ["Log", "Site", "Visit"] { #expect(valid.output.contains(name)) }
    }

    @Test(arguments: [
        (["import", "realm", "@missing"], "does not exist"), (["import", "realm", "@empty"], "no file schema.json"),
        (["import", "realm", "@wrong.json"], "is no schema of App Services"),
        (["validate", "@missing"], "cannot read"),
        (["import", "realm", "@broken/schema.json"], "neither YAML nor JSON"),
    ]) func unusableFileIsNamed(arguments: [String], expected: String) throws {
        let files = [
            ("empty/readme.txt", ""), ("wrong.json", "{}"), ("broken/relationships.json", "{"),
            ("broken/schema.json", #"{"title":"A","properties":{}}"#),
        ]
        let result = try run(files, arguments)
        #expect(result.status == 1 && result.output.isEmpty)
        #expect(result.errors.contains(expected), "\(result.errors)")
        #expect(result.errors.split(separator: "\n").count == 1)
    }
}
