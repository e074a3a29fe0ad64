import Foundation
import Model
import ObjectStore
import Postgres
import TestSupport
import Testing

/// `fieldpost schema apply`, `show` and `history`.
@Suite(.ownThreads) struct KindVersionCommandTests {
    private let conninfo: String

    init() throws {
        conninfo = try makeFoundationDatabase()
        var connection = try Connection(conninfo)
        for (id, name) in [(Int32(1), "acme"), (2, "other")] {
            try EnvironmentRows(id: id, name: name, provider: .init(issuer: "https://\(name).example"))
                .insert(on: &connection)
        }
    }

    private static let file = """
        kinds:
          Inspection:
            realms: [user]
            properties:
              site: {type: string, maxLength: 200}
              photos: {type: array, items: {type: string, format: uuid, references: image}}
            permissions:
              - {who: [owner], may: [create]}

        """

    private func run(_ arguments: [String], _ text: String? = nil) throws -> CommandResult {
        try withFolder { folder in
            let file = folder.appending(path: "kinds.yaml")
            if let text { try Data(text.utf8).write(to: file) }
            return try fieldpost(
                ["schema"] + arguments + (text == nil ? [] : [file.path]),
                environment: ["FIELDPOST_DATABASE_URL": conninfo])
        }
    }

    private func rows(_ statement: Statement) throws -> Rows {
        var connection = try Connection(conninfo)
        return try connection.run(statement)
    }

    private func addObject() throws {
        var connection = try Connection(conninfo)
        var directory = RealmDirectory()
        let environment = EnvironmentID(rawValue: 1)
        let realm = try #require(
            try directory.id(of: .user("ana@example.com"), in: environment, create: true, on: &connection))
        var batch = WriteBatch(environment: environment)
        let kind = Kind.own(OwnKind(number: 1_000))
        try batch.put(ObjectKey(realm: realm, kind: kind, id: UUID()), CanonicalJSON(#"{"site": "Roof"}"#), decision: 0)
        _ = try batch.commit(on: &connection)
    }

    @Test func versionsAreAppliedShownAndListed() throws {
        #expect(try run(["show", "acme"]).errors.contains("acme declares no kinds"))
        let first = try run(["apply", "acme"], Self.file)
        #expect(first.status == 0 && first.output.contains("acme uses version 1\n"), "\(first.output)\(first.errors)")
        #expect(first.output.contains(/additive +Inspection +- +is new/))
        #expect(try run(["apply", "acme"], Self.file).output == "acme uses this file already\n")
        // What is printed is the file in another form.
        let shown = try run(["show", "acme"]).output
        #expect(shown.contains("maxLength: 200"))
        #expect(try run(["apply", "acme"], shown).output == "acme uses this file already\n")
        let second = Self.file.replacing("maxLength: 200", with: "maxLength: 300")
        let dry = try run(["apply", "acme", "--dry-run"], second)
        #expect(dry.status == 0 && dry.output.contains("maxLength 300 instead of 200") && !dry.output.contains("uses"))
        #expect(try run(["apply", "acme"], second).output.contains("acme uses version 2\n"))
        #expect(try run(["show", "acme", "--version", "1"]).output == shown)
        #expect(try run(["show", "acme", "--version", "9"]).errors.contains("acme has no version 9"))
        let history = try run(["history", "acme"]).output.split(separator: "\n")
        #expect(history.count == 3 && history[1].contains(/2  +20.*cli:/), "\(history)")
        // Another environment has the same number for the name, and its own versions.
        #expect(try run(["apply", "other"], Self.file).output.contains("other uses version 1\n"))
        #expect(
            try rows("SELECT number, name FROM realm.kind WHERE number >= 1000").decode(Int16.self, String.self)
                .map { "\($0) \($1)" } == ["1000 Inspection"])
        #expect(
            try rows("SELECT environment_id, kind, image_paths FROM realm.own_kind ORDER BY 1").decode(
                Int32.self, Int16.self, [String].self
            ).map { "\($0) \($1) \($2)" } == [1, 2].map { "\($0) 1000 [\"$.\\\"photos\\\"[*]\"]" })
        let audit = try rows(
            "SELECT subject, detail::text FROM access.audit WHERE action = 'kinds.applied' ORDER BY id"
        ).decode(String.self, String.self).map { "\($0) \($1)" }
        #expect(
            audit == [#"acme {"version": "1"}"#, #"acme {"version": "2"}"#, #"other {"version": "1"}"#], "\(audit)")
    }

    /// A breaking change is refused while there are objects, and possible without them.
    @Test func breakingChangeIsRefusedWithTheNumberOfObjects() throws {
        let narrow = Self.file.replacing("maxLength: 200", with: "maxLength: 100")
        #expect(try run(["apply", "acme"], Self.file).status == 0)
        for _ in 0..<3 { try addObject() }
        for arguments in [["apply", "acme"], ["apply", "acme", "--dry-run"]] {
            let refused = try run(arguments, narrow)
            #expect(refused.status == 1)
            #expect(
                refused.errors.contains(
                    "Inspection /site has the maxLength 100 instead of 200, but there are 3 objects of Inspection; "
                        + "keep the field, and add one of another name"), "\(refused.errors)")
        }
        #expect(try run(["apply", "acme"], "kinds: {}\n").errors.contains("Inspection was removed, but there are 3"))
        #expect(try run(["history", "acme"]).output.split(separator: "\n").count == 2)
        // The other environment has no objects.
        #expect(try run(["apply", "other"], Self.file).status == 0)
        #expect(try run(["apply", "other"], narrow).status == 0)
        #expect(try run(["apply", "other"], "kinds: {}\n").status == 0)
        #expect(try run(["show", "other"]).output == "kinds: {}\n")
    }

    @Test func invalidFilesAndNamesAreRefused() throws {
        #expect(try run(["apply", "nowhere"], Self.file).errors.contains("nowhere"))
        #expect(try run(["apply", "acme"], "kinds: 7\n").errors.contains("kinds.yaml:1: /kinds"))
        let deep = String(repeating: "{type: array, items: ", count: 15) + "{}" + String(repeating: "}", count: 15)
        let file = "kinds:\n  Deep:\n    realms: [user]\n    properties: {a: \(deep)}\n"
        #expect(try run(["apply", "acme"], file).status == 0)
        #expect(try run(["show", "acme"]).status == 0)
        let deeper = deep.replacing("items: {}", with: "items: {properties: {a: {properties: {b: {}}}}}")
        let result = try run(["apply", "acme"], file.replacing(deep, with: deeper))
        #expect(result.status == 1 && result.errors.contains("kinds.yaml"), "\(result.errors)")
    }
}
