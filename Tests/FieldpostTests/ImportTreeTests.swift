import Essentials
import Foundation
import Model
import ObjectStore
import Postgres
import TestSupport
import Testing

/// `fieldpost import tree`.
@Suite(.ownThreads) struct ImportTreeTests {
    private let conninfo: String
    private let environment: EnvironmentID
    private static let own = "/users/ana@acme.example"

    init() throws {
        conninfo = try makeFoundationDatabase()
        var connection = try Connection(conninfo)
        let rows = try connection.run("INSERT INTO realm.environment (name) VALUES ('acme') RETURNING id")
        environment = EnvironmentID(rawValue: try rows[0].value(0))
        var directory = RealmDirectory()
        let path = try #require(RealmPath(Self.own))
        _ = try directory.id(of: path, in: environment, create: true, on: &connection)
    }

    /// The first model's example: five trees, each depending on the one before.
    private static func example(kindRoot: String = "de808bee-75f2-4ad1-b656-ac9b3bfec741") -> String {
        func node(_ id: String, _ reference: String, _ name: String, after: [String] = []) -> String {
            let dependencies = after.map { #"{"id": "\#($0)"}"# }.joined(separator: ", ")
            return """
                {"id": "\(id)", "referenceId": "\(reference)", "name": "\(name)", "title": "\(name)",
                 "hasDependencies": \(!after.isEmpty), "dependencies": [\(dependencies)], "children": []}
                """
        }
        func tree(_ id: String, _ name: String, _ children: [String]) -> String {
            """
            {"id": "\(id)", "name": "\(name)", "hasDependencies": false, "dependencies": [],
             "children": [\(children.joined(separator: ", "))]}
            """
        }
        func context(_ id: String, _ name: String, _ root: String, _ more: String = "") -> String {
            """
            {"id": "\(id)", "name": "\(name)", "required": true,
             "sections": [\(more){"name": "All", "rootNode": {"id": "\(root)"}}]}
            """
        }
        let (dsb, arkyn) = ("ac7bccce-190e-4679-ab67-cc17826f1f67", "3b31963f-c160-4972-84af-6258202d3060")
        let (design, phase) = ("a65aa78a-fd83-4f46-b74e-c6f05b1f1989", "79b19250-8ab7-4627-83c9-6593c98b7f47")
        let activity = "6b7e3cfc-c377-41e9-bf68-e0a20274851a"
        let roots = [
            "66dbe9fc-e62f-4d42-a558-c5f0aee25654", "2a33c1ef-ed92-4b1c-8ed3-e611d8b2fe4d",
            "4e86a728-a1f0-41de-af35-efe511801889", "80372fd0-42d9-42b6-b3f8-7a9878a82c36",
        ]
        let trees = [
            tree(roots[0], "customer-root", [node(dsb, "12345", "DSB"), node(arkyn, "12346", "Arkyn Studios Aps")]),
            tree(
                roots[1], "project-root",
                [
                    node("19aef05b-027b-4836-9eb3-7683294a5d2a", "ABC123", "Some DSB Project", after: [dsb]),
                    // Ids are case-insensitive.
                    node(design.uppercased(), "ABC124", "Design", after: [arkyn]),
                ]),
            tree(roots[2], "phases-root", [node(phase, "P1", "Div. grafisk arbejde", after: [design])]),
            tree(roots[3], "activities-root", [node(activity, "A1", "Timer", after: [phase])]),
            tree(
                "de808bee-75f2-4ad1-b656-ac9b3bfec741", "activities-root",
                [
                    node("96ba7b19-0bfa-4a36-ac96-4a83b0aabb31", "K1", "Fakturérbare", after: [activity]),
                    node("d0575d68-4052-4958-bc3e-97605f9e1d5d", "K2", "Ikke fakturérbart", after: [activity]),
                    node("31cb3362-11ec-47ad-8824-3b27fa3b94a0", "K3", "Overarbejde", after: [activity]),
                ]),
        ]
        let suggestions = #"{"name": "Suggestions", "showCount": 5, "items": [{"id": "\#(arkyn)"}]}, "#
        let contexts = [
            context("ecede996-1b85-45dc-9ee0-89da88f97441", "Customer", roots[0], suggestions),
            context("0eec02fb-8463-4e4c-ae50-dd6a377a270c", "Project", roots[1]),
            context("ed0c006c-2ba7-4a2b-8843-88b8e2d16c96", "Phase", roots[2]),
            context("d5b7219c-75b7-4c93-ad37-4c21985deb39", "Activity", roots[3]),
            context("2a15f5a0-5df3-4cde-8eff-4def5988b200", "Kind", kindRoot),
        ]
        return """
            {"trees": [\(trees.joined(separator: ",\n"))], "contexts": [\(contexts.joined(separator: ",\n"))],
             "templates": [{"id": "7b0c9d3e-6e0a-4f0b-9f6e-0d3b0f6f0a01", "name": "Project time registration",
              "type": "project", "reportingContexts": [{"id": "ecede996-1b85-45dc-9ee0-89da88f97441"},
              {"id": "0eec02fb-8463-4e4c-ae50-dd6a377a270c"}, {"id": "ed0c006c-2ba7-4a2b-8843-88b8e2d16c96"},
              {"id": "d5b7219c-75b7-4c93-ad37-4c21985deb39"}, {"id": "2a15f5a0-5df3-4cde-8eff-4def5988b200"}]}]}
            """
    }

    private func bring(_ json: String, to realm: String = own, _ options: [String] = []) throws -> CommandResult {
        var result: CommandResult?
        try withFolder { folder in
            let file = folder.appendingPathComponent("trees.json")
            try json.write(to: file, atomically: true, encoding: .utf8)
            result = try fieldpost(
                ["import", "tree", file.path, "--realm", realm] + options,
                environment: ["FIELDPOST_DATABASE_URL": conninfo])
        }
        return try #require(result)
    }

    private func query(_ statement: Statement) throws -> [String] {
        var connection = try Connection(conninfo)
        return try connection.run(statement).map { try $0.value(0, as: String.self) }
    }

    private func objectCount() throws -> [String] { try query("SELECT count(*)::text FROM realm.object") }

    /// With a back end in Fieldpost, people choose from its lists, and imported trees would not be used.
    @Test func treeImportIsRejectedWithBackEnd() throws {
        var connection = try Connection(conninfo)
        try EnvironmentRows(backend: .init()).insert(on: &connection)
        let result = try bring(Self.example())
        #expect(result.status == 1 && result.errors.contains("fieldpost environment templates"), "\(result.errors)")
        #expect(try objectCount() == ["0"])
    }

    @Test func firstModelExampleIsImportedFlat() throws {
        let result = try bring(Self.example())
        #expect(result.status == 0, "\(result.errors)")
        #expect(
            result.output == Self.own + ": 20 written (14 nodes, 5 contexts, 1 template), 0 unchanged\n")
        let design = try query(
            """
            SELECT concat_ws(' ', id, fields->>'parent', fields->'dependencies'->>0, fields->>'hasDependencies')
            FROM realm.object WHERE kind = 'ReportingTreeNode' AND fields->>'referenceId' = 'ABC124'
            """)
        #expect(
            design == [
                "a65aa78a-fd83-4f46-b74e-c6f05b1f1989 2a33c1ef-ed92-4b1c-8ed3-e611d8b2fe4d "
                    + "3b31963f-c160-4972-84af-6258202d3060 true"
            ])
        // Written as edits: the poller deletes only objects that Fieldpost itself created.
        #expect(try query("SELECT count(*)::text FROM realm.object WHERE edit_position = position") == ["20"])
        #expect(
            try query(
                """
                SELECT concat_ws(' ', subject, detail->>'nodes', detail->>'contexts', detail->>'templates')
                FROM access.audit WHERE action = 'tree.imported'
                """) == [Self.own + " 14 5 1"])

        let positions = try query("SELECT position::text FROM realm.environment")
        let again = try bring(Self.example())
        #expect(again.output == Self.own + ": 0 written, 20 unchanged\n", "\(again.errors)")
        #expect(try query("SELECT position::text FROM realm.environment") == positions)
        #expect(try query("SELECT count(*)::text FROM access.audit WHERE action = 'tree.imported'") == ["1"])

        let changed = Self.example().replacingOccurrences(of: #""title": "Timer""#, with: #""title": "Hours""#)
        let third = try bring(changed, to: "/users/ANA@acme.example", ["--json"])
        let figures = try #require(
            try JSONSerialization.jsonObject(with: Data(third.output.utf8)) as? [String: Any])
        #expect(figures["nodes"] as? Int == 1 && figures["unchanged"] as? Int == 19)
        #expect(figures["realm"] as? String == Self.own)
    }

    @Test func singleTreeAndArrayAreImported() throws {
        let (first, second) = (UUID().text, UUID().text)
        #expect(try bring(#"{"id": "\#(first)", "name": "A"}"#).status == 0)
        let result = try bring(
            #"[{"id": "\#(second)", "name": "B", "dependencies": [{"id": "\#(first)"}]}]"#)
        #expect(result.status == 0, "stored trees may be referenced: \(result.errors)")
        #expect(try objectCount() == ["2"])
    }

    @Test func manyNodesAreImportedInBatches() throws {
        let children = (0..<1_200).map { #"{"id": "\#(UUID().text)", "name": "N\#($0)"}"# }.joined(separator: ",")
        let json = #"{"id": "\#(UUID().text)", "name": "root", "children": [\#(children)]}"#
        #expect(try bring(json).output.contains("1201 written (1201 nodes), 0 unchanged"))
        #expect(try bring(json).output.contains("0 written, 1201 unchanged"))
        #expect(try objectCount() == ["1201"])
    }

    /// A person's contexts refer to nodes of their catalogue.
    @Test func contextMayReferToPersonsCatalogue() throws {
        let (catalogue, node) = (UUID(), UUID())
        var connection = try Connection(conninfo)
        var directory = RealmDirectory()
        let realm = RealmPath.catalogue(catalogue)
        _ = try directory.id(of: realm, in: environment, create: true, on: &connection)
        let context = """
            {"contexts": [{"id": "\(UUID().text)", "name": "C", "sections": [
              {"name": "All", "rootNode": {"id": "\(node.text)"}}]}]}
            """
        let tree = #"{"id": "\#(node.text)", "name": "root"}"#
        #expect(try bring(tree, to: "/catalogues/" + catalogue.uuidString).status == 0)
        #expect(try bring(context).errors.contains("node \(node.text) does not exist"))
        let path = try #require(RealmPath(Self.own))
        let own = try #require(try directory.id(of: path, in: environment, create: false, on: &connection))
        var batch = WriteBatch(environment: environment)
        let fields = #"{"email": "ana@acme.example", "name": "Ana", "catalogue": "\#(catalogue.text)"}"#
        batch.put(ObjectKey(realm: own, kind: .user, id: UUID()), try CanonicalJSON(fields), decision: 0)
        _ = try batch.commit(on: &connection)
        let result = try bring(context)
        #expect(result.status == 0, "\(result.errors)")
    }

    @Test func invalidTreeFileIsRejectedWithLocation() throws {
        let (a, b) = (UUID().text, UUID().text)
        func nested(_ depth: Int) -> String {
            let children = depth > 1 ? #", "children": [\#(nested(depth - 1))]"# : ""
            return #"{"id": "\#(UUID().text)", "name": "n"\#(children)}"#
        }
        let both = """
            {"trees": [{"id": "\(a)", "name": "A"}], "contexts": [{"id": "\(b)", "name": "C", "sections": [
              {"name": "S", "items": [], "rootNode": {"id": "\(a)"}}]}]}
            """
        let dozen = (0..<12).map { _ in #"{"id": "\#(a)"}"# }.joined(separator: ",")
        for (json, problem) in [
            (Self.example(kindRoot: "6f45167b-ae9f-467a-b2b6-5dcf674a900b"), "context 'Kind' (2a15f5a0-"),
            (
                #"[{"id": "\#(a)", "name": "A"}, {"id": "\#(a.uppercased())", "name": "B"}]"#,
                "node 'B': 'A' has the same id \(a)"
            ),
            (#"{"id": "\#(a)", "name": "A", "dependencies": [{"id": "\#(b)"}]}"#, "dependency \(b) does not exist"),
            (both, "the section 'S' has 'items' and 'rootNode'; give one of them"),
            (#"{"trees": [{"id": "\#(a)", "nmae": "A"}]}"#, "trees[0]: unknown key 'nmae'; allowed: children,"),
            (#"{"trees": [{"id": "\#(a)", "nmae": "A"}]}"#, "trees[0]: 'name' is missing"),
            (#"{"id": "\#(a)", "name": "A", "children": [{"name": "B"}]}"#, "children[0]: 'id' is missing"),
            (#"{"templates": [{"name": "T", "type": "t"}]}"#, "templates[0]: 'id' is missing"),
            (#"{"id": "\#(a)", "name": "A", "children": [{"id": "b", "name": "B"}]}"#, "children[0].id: "),
            (
                #"{"id": "\#(a)", "name": "A", "children": [{"id": "\#(b)", "name": "B", "name": "C"}]}"#,
                "'children[0].name': duplicate key"
            ),
            (#"{"id": "\#(a)", "name": "\u200b"}"#, "'name' must have a visible character"),
            (#"{"id": "\#(a)", "name": 1}"#, "name: "), (#"{"tree": []}"#, "unknown key 'tree'"),
            (#"{"id": "\#(a)", "name": "A\u0000"}"#, "a text has U+0000"), ("{}", "the file is empty"),
            (nested(65), "a tree is at most 64 nodes deep"), ("[", "trees.json: "), ("1", "trees.json: "),
            (#"{"id": "\#(a)", "name": "\#(String(repeating: "x", count: 66_000))"}"#, "more than 65536 bytes"),
            ("[\(dozen)]", "[9]: 'name' is missing; and 2 more"),
        ] {
            let result = try bring(json)
            #expect(result.status == 1 && result.errors.contains(problem), "\(problem): \(result.errors)")
            #expect(result.errors.split(separator: "\n").count == 1)
        }
        #expect(try objectCount() == ["0"])
        #expect(try bring(nested(64)).output.contains("64 written"))
    }

    @Test func unsuitableRealmIsRejected() throws {
        let tree = #"{"id": "\#(UUID().text)", "name": "A"}"#
        let unknown = try bring(tree, to: "/users/bo@acme.example")
        #expect(unknown.status == 1 && unknown.errors.contains("realm /users/bo@acme.example does not exist"))
        for realm in ["/common", "/users", "/catalogues/x", "users", "/teams/" + UUID().text] {
            let result = try bring(tree, to: realm)
            #expect(result.status == 2 && result.errors.contains("--realm"), "\(result.errors)")
        }
        #expect(try bring(tree, ["--environment", "other"]).errors.contains("environment other does not exist"))
        let result = try fieldpost(
            "import", "tree", "/nowhere.json", "--realm", Self.own, environment: ["FIELDPOST_DATABASE_URL": conninfo])
        #expect(result.status == 1 && result.errors.contains("cannot read /nowhere.json"))
    }

    @Test func oversizedTreeFileIsRejected() throws {
        let many = (0...100_000).map { _ in #"{"id": "\#(UUID().text)", "name": "n"}"# }.joined(separator: ",")
        let result = try bring("[\(many)]")
        #expect(result.status == 1 && result.errors.contains("there are 100001 nodes; the maximum is 100000"))
        #expect(try bring(String(repeating: " ", count: 64 * 1024 * 1024 + 1)).errors.contains("more than 67108864"))
    }
}
