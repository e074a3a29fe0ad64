import Essentials
import Foundation
import Model
import ObjectStore
import Postgres
import TestSupport
import Testing

@testable import Fieldpost

/// `fieldpost import objects`.
@Suite(.ownThreads) struct ImportObjectsTests {
    private typealias World = ImportFixture

    @Test func unchangedObjectUsesNoPosition() throws {
        let world = try World()
        let (note, task) = (UUID(), UUID())
        func lines(_ title: String) -> [String] {
            [
                World.line("/users/Ana@acme.example", .note, note, #"{"title": "\#(title)", "isTask": true}"#),
                World.line("/manager", .fieldTask, task, #"{ "isCompleted":false,"title":"T" }"#), "",
            ]
        }
        let first = try world.bring("objects", lines("A"), ["--json"])
        #expect(first.status == 0 && first.errors.isEmpty, "\(first.errors)")
        #expect(
            try World.figures(first) == [
                "lines": 2, "created": 2, "replaced": 0, "unchanged": 0, "refused": 0, "warned": 1,
            ])
        let paths = try world.query("SELECT path FROM realm.realm WHERE path LIKE '/users/%'")
        #expect(paths == ["/users/ana@acme.example"])
        #expect(try world.query("SELECT count(*)::text FROM store.object WHERE edit_position = position") == ["2"])
        #expect(try world.query("SELECT count(*)::text FROM store.change") == ["2"])
        let (objects, position) = (try world.objects(), try world.position())

        let again = try world.bring("objects", lines("A"), ["--json"])
        #expect(try World.figures(again)["unchanged"] == 2)
        #expect(try world.objects() == objects && world.position() == position)
        let records = "SELECT detail->>'state' FROM access.audit WHERE action = 'objects.imported' ORDER BY id"
        #expect(
            try world.query(Statement(stringLiteral: records)) == ["begun", "ended"],
            "unchanged objects have no audit record")

        let other = try world.bring("objects", lines("B"), ["--json"])
        let figures = try World.figures(other)
        #expect(figures["replaced"] == 1 && figures["unchanged"] == 1)
        #expect(try world.position() == ["3"])
    }

    /// An import replaces a tombstone, as an integration's put does.
    @Test func importReplacesTombstone() throws {
        let world = try World()
        #expect(try world.bring("objects", [World.task(1)]).status == 0)
        let id = try #require(UUID(uuidString: try world.query("SELECT id::text FROM store.object")[0]))
        try world.delete(.fieldTask, id)
        let result = try world.bring("objects", [World.task(1)], ["--json"])
        #expect(try World.figures(result)["replaced"] == 1)
        #expect(try world.query("SELECT position::text FROM store.object WHERE NOT deleted") == ["3"])
    }

    @Test func invalidLinesAreReportedAndOthersImported() throws {
        let world = try World()
        let (id, other) = (UUID(), UUID())
        let cases: [(line: String, reason: String)] = [
            ("nonsense", "a JSON object is required"), (#"{"realm": "/manager""#, "the text ends"),
            ("[]", "is required"),
            (World.task(1) + "}", "unexpected bytes after the value"),
            (#"{"kind": "FieldTask"}"#, "'realm' is missing"), (#"{"realm": 7}"#, "'realm' is missing or not a string"),
            (World.line("manager", .fieldTask, id, "{}"), "it does not begin with '/'"),
            (World.line("/polls", .fieldTask, id, "{}"), "'/polls' does not exist"),
            (World.line("/teams/x", .fieldTask, id, "{}"), "'/teams/x'"),
            (#"{"realm": "/manager"}"#, "'kind' is missing"),
            (#"{"realm": "/manager", "kind": "Task"}"#, "unknown kind 'Task'"),
            (#"{"realm": "/manager", "kind": "FieldTask", "fields": {}}"#, "'id' is missing"),
            (#"{"realm": "/manager", "kind": "FieldTask", "id": "7", "fields": {}}"#, "'id' is not a UUID"),
            (#"{"realm": "/manager", "kind": "FieldTask", "id": "\#(id)"}"#, "'fields' is missing"),
            (World.line("/manager", .fieldTask, id, "7"), "fields: a JSON object is required"),
            (World.line("/manager", .fieldTask, id, "{}"), "not a valid FieldTask: 'title' is missing"),
            (World.line("/manager", .fieldTask, id, #"{"title": 7}"#), "'title' must be a text"),
            (World.line("/manager", .fieldTask, id, #"{"title": "A", "titel": "B"}"#), "no field 'titel'"),
            (World.line("/manager", .fieldTask, id, #"{"title": "\u0000"}"#), "cannot be stored"),
            (World.line("/manager", .note, id, #"{"title": "A"}"#), "Note objects are imported into /users/{e-mail}"),
            (World.line("/manager", .fieldTask, id, #"{"title": "A"}"#, more: #""extra": 1, "#), "unknown key 'extra'"),
            (
                World.line("/manager", .fieldTask, id, #"{"title": "A"}"#, more: #""email": "a@b.c", "#),
                "allowed for Person"
            ),
            (
                World.line("/common", .person, id, "{}", more: #""email": "unknown", "#),
                "'email' is not a valid address"
            ),
            (World.line("/common", .membership, id, #"{"person": "\#(id)", "team": "\#(other)"}"#), "must be"),
            (
                World.line(
                    "/users/a@acme.example", .sharedItem, id,
                    #"{"kind": "Note", "item": "\#(id)", "recipient": "\#(other)"}"#),
                SharedItem.id(of: id, with: other).text
            ),
        ]
        let lines = cases.map(\.line) + [World.task(1)]
        let result = try world.bring("objects", lines, ["--problems", "100"])
        #expect(result.status == 1)
        let messages = result.errors.split(separator: "\n")
        #expect(messages.count == cases.count + 1 && messages.last == "fieldpost: 25 of 26 lines were rejected")
        for (number, (one, text)) in zip(cases, messages).enumerated() {
            #expect(text.hasPrefix("line \(number + 1): ") && text.contains(one.reason), "\(one): \(text)")
        }
        #expect(try world.objects().count == 1)

        let few = try world.bring("objects", lines, ["--problems", "2"])
        #expect(few.errors.split(separator: "\n").count == 4 && few.errors.contains("\nand 23 more\n"))
        let json = try world.bring("objects", lines, ["--json"])
        #expect(json.status == 1 && json.output.contains(#""line" : 1"#))
        #expect(try World.figures(json)["refused"] == 25)
    }

    @Test func oversizedLinesAreRejectedAndLaterLinesImported() throws {
        let world = try World()
        let realm = "/users/a@acme.example"
        func text(_ count: Int) -> String { String(repeating: "x", count: count) }
        let overhead = #"{"title": ""}"#.utf8.count
        let result = try world.bring(
            "objects",
            [
                World.line(realm, .note, UUID(), #"{"title": "\#(text(65_536 - overhead))"}"#),
                World.line(realm, .note, UUID(), #"{"title": "\#(text(65_537 - overhead))"}"#),
                World.line("/common", .team, UUID(), #"{"name": "\#(text(4_096))"}"#),
                World.line(realm, .note, UUID(), #"{"title": "\#(text(LineReader.bytesMax))"}"#),
                World.line(realm, .note, UUID(), #"{"title": "\#(text(3 << 20))"}"#), World.task(1),
            ])
        let messages = result.errors.split(separator: "\n")
        // Includes the warning that no person has the address.
        try #require(messages.count == 6, "\(result.errors.prefix(400))")
        #expect(messages[0] == "line 2: the fields have 65537 bytes; at most 65536 are allowed")
        #expect(messages[1].hasPrefix("line 3: the fields have") && messages[1].hasSuffix("at most 4096 are allowed"))
        #expect(
            messages[2] == "line 4: the line has more than 262144 bytes"
                && messages[3].hasPrefix("line 5: the line has"))
        #expect(try world.objects().count == 2)
    }

    @Test func unreadableFilesAndArgumentsAreRejected() throws {
        let world = try World()
        try withFolder { folder in
            let file = folder.appendingPathComponent("x.gz")
            try Data([0x1F, 0x8B, 8, 0]).write(to: file)
            let result = try world.run("objects", file.path)
            #expect(result.status == 1 && result.errors.contains("is compressed: pipe it with zcat"))
            #expect(result.errors.split(separator: "\n").count == 1)
        }
        #expect(try world.run("objects", "/nowhere").errors.contains("cannot read /nowhere"))
        for arguments in [["objects"], ["objects", "x", "--problems", "-1"]] {
            let result = try fieldpost(["import"] + arguments, environment: ["FIELDPOST_DATABASE_URL": world.conninfo])
            #expect(result.status == 2 && result.errors.split(separator: "\n").count == 1, "\(arguments)")
        }
    }

    /// In a regular file, teams may be after the tasks that name them.
    @Test func commonObjectsAreImportedFirst() throws {
        let (world, team) = (try World(), UUID())
        let lines = [World.task(1, team: team), World.line("/common", .team, team, #"{"name": "T"}"#)]
        #expect(try world.bring("objects", lines).status == 0)
        let order: Statement = "SELECT kind::text FROM store.object ORDER BY position"
        #expect(try world.query(order) == ["\(Kind.team.number)", "\(Kind.fieldTask.number)"])

        let once = try World()
        try withFolder { folder in
            let pipe = folder.appendingPathComponent("pipe")
            try #require(unsafe mkfifo(pipe.path, 0o600) == 0)
            World.feed(pipe, lines)
            let result = try once.run("objects", pipe.path)
            #expect(result.status == 0, "\(result.errors)")
        }
        #expect(try once.query(order) == ["\(Kind.fieldTask.number)", "\(Kind.team.number)"])
    }

    @Test func importedPersonKeepsID() throws {
        let (world, ana, bo) = (try World(), UUID(), UUID())
        func person(_ id: UUID, _ email: String?) -> String {
            World.line(
                "/common", .person, id, #"{"name": "N"}"#, more: email.map { #""email": "\#($0)", "# } ?? "")
        }
        let first = try world.bring("objects", [person(ana, "ANA@acme.example"), person(bo, nil)])
        #expect(first.errors.hasPrefix("line 2: no person has this id; give 'email'"), "\(first.errors)")
        let people: Statement = "SELECT email || ' ' || object_id FROM access.person ORDER BY 1"
        #expect(try world.query(people) == ["ana@acme.example \(ana.text)"])
        let second = try world.bring(
            "objects",
            [person(ana, nil), person(bo, "ana@acme.example"), person(ana, "bo@acme.example"), person(ana, nil)])
        #expect(second.errors.contains("line 2: ana@acme.example exists already, with the id \(ana.text)\n"))
        #expect(second.errors.contains("line 3: the id belongs to ana@acme.example\n"))
        #expect(try world.query(people) == ["ana@acme.example \(ana.text)"])
        #expect(try world.objects().count == 1)
    }

    @Test func backEndKindsAreRejected() throws {
        let world = try World()
        var connection = try Connection(world.conninfo)
        try EnvironmentRows(backend: .init()).insert(on: &connection)
        let result = try world.bring(
            "objects",
            [World.line("/users/a@acme.example", .user, UUID(), #"{"email": "a@acme.example", "name": "A"}"#)])
        #expect(result.errors.hasPrefix("line 1: User objects come from the environment's back end"))
    }

    // MARK: Interrupted

    /// An import is killed after one batch: repeated with the same file, it has the result of one run.
    @Test func killedImportResumes() throws {
        let lines = (0..<5_000).map { World.task($0) }
        let (world, whole) = (try World(), try World())
        try killFieldpost(
            reading: Data(lines.prefix(4_500).map { $0 + "\n" }.joined().utf8), { ["import", "objects", $0] },
            environment: ["FIELDPOST_DATABASE_URL": world.conninfo]
        ) {
            try waitUntil("a batch is written") { try !world.objects().isEmpty }
        }
        let count = try world.objects().count
        #expect(count > 0 && count < 4_500 && count.isMultiple(of: ObjectImport.batchCountMax))
        let again = try world.bring("objects", lines, ["--json"])
        let figures = try World.figures(again)
        #expect(figures["unchanged"] == count && figures["created"] == 5_000 - count)
        #expect(try whole.bring("objects", lines).status == 0)
        #expect(try world.objects() == whole.objects())
        #expect(try world.position() == whole.position())
    }

    /// The server ends the session: one error line, status 1, and complete batches.
    @Test func lostConnectionKeepsEarlierBatches() throws {
        let world = try World()
        var work = ObjectImport(
            "test", in: world.environment, hasBackend: false, catalogue: .unloaded,
            on: try Connection(world.conninfo), problemCountMax: 1)
        var lines = ObjectLines(hasBackend: false, catalogue: .unloaded)
        var admin = try Connection(world.conninfo)
        #expect(throws: PostgresError.self) {
            for number in 0..<5_000 {
                let object = try lines.object(Array(World.task(number).utf8), in: nil)
                try work.add(try #require(object), line: number)
                if number == 4_500 {
                    try admin.run(
                        """
                        SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                        WHERE datname = current_database() AND pid <> pg_backend_pid()
                        """)
                }
            }
            try work.end()
        }
        #expect(try world.objects().count.isMultiple(of: ObjectImport.batchCountMax))
        #expect(try world.bring("objects", (0..<5_000).map { World.task($0) }).status == 0)
        #expect(try world.objects().count == 5_000)
    }

    @Test func lastDuplicateOfObjectWins() throws {
        let (world, id) = (try World(), UUID())
        let lines = ["A", "B"].map { World.line("/manager", .fieldTask, id, #"{"title": "\#($0)"}"#) }
        let result = try world.bring("objects", lines, ["--json"])
        #expect(try World.figures(result)["unchanged"] == 1)
        #expect(try world.query("SELECT fields FROM store.object") == [#"{"title": "B"}"#])
        // Also across batches.
        let far = [lines[0]] + (0..<2_000).map { World.task($0) } + [lines[1]]
        #expect(try world.bring("objects", far).status == 0)
        #expect(try world.query("SELECT fields FROM store.object WHERE id = \(id)") == [#"{"title": "B"}"#])
    }

    @Test func documentedLinesAreImported() throws {
        let url = projectFolder.appendingPathComponent("docs/apps/from-realm.md")
        let text = try String(contentsOf: url, encoding: .utf8)
        let lines = text.split(separator: "\n").filter { $0.hasPrefix(#"{"realm""#) }.map(String.init)
        let result = try World().bring("objects", lines, ["--json"])
        #expect(result.status == 0, "\(result.output)")
        #expect(try World.figures(result)["created"] == 5)
    }
}
