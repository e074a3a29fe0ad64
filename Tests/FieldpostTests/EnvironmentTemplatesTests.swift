import Foundation
import Model
import ObjectStore
import Postgres
import TestSupport
import Testing

/// `fieldpost environment templates`, and the adapter's settings.
@Suite(.ownThreads) struct EnvironmentTemplatesTests {
    private let conninfo: String

    init() throws {
        conninfo = try makeFoundationDatabase()
        for (name, arguments) in [
            ("acme", ["--backend", "sap", "--backend-user", "FIELDPOST"]), ("other", ["--backend", "economic"]),
        ] {
            let result = try run(
                [
                    "add", name, "--domain", name + ".example", "--issuer", "http://127.0.0.1:8081/" + name,
                    "--audience", "fieldpost", "--jwks-url", "http://127.0.0.1:8081/jwks", "--backend-url",
                    "http://127.0.0.1:8200", "--backend-password-variable", "PASSWORD",
                ] + arguments)
            try #require(result.status == 0, "\(result.errors)")
        }
    }

    private func run(_ arguments: [String]) throws -> CommandResult {
        try fieldpost(["environment"] + arguments, environment: ["FIELDPOST_DATABASE_URL": conninfo])
    }

    private func declare(_ json: String, in environment: String = "acme") throws -> CommandResult {
        var result: CommandResult?
        try withFolder { folder in
            let file = folder.appendingPathComponent("templates.json")
            try json.write(to: file, atomically: true, encoding: .utf8)
            result = try run(["templates", environment, "--file", file.path])
        }
        return try #require(result)
    }

    private let leave = """
        {"lists": [{"name": "absences", "nodes": [{"referenceId": "0100", "title": "Leave"}]}],
         "templates": [{"key": "leave", "name": "Leave", "type": "absence", "contexts": [
           {"name": "Absence", "list": "absences", "field": "TimeSheetTaskType"}]}]}
        """

    /// The adapter is in an executable of another package.
    @Test func kindWithoutAdapterIsReported() throws {
        var connection = try Connection(conninfo)
        try connection.run("UPDATE backend.connection SET kind = 'elsewhere' WHERE kind = 'sap'")
        let message =
            "environment acme has a back end of kind 'elsewhere', but this program has adapters for sap, economic only"
        for arguments in [["templates", "acme"], ["edit", "acme", "--poll-interval", "9"]] {
            let result = try run(arguments)
            #expect(result.status == 1 && result.errors.contains(message), "\(result)")
        }
        #expect(try run(["edit", "other", "--poll-interval", "9"]).status == 0)
        #expect(try run(["edit", "acme", "--backend", "none"]).status == 0)
    }

    @Test func declaredTemplatesAreShownAndRequestFullComparison() throws {
        var connection = try Connection(conninfo)
        try connection.run(
            """
            INSERT INTO poll.run (environment_id, run, started_at, full_started_at)
            SELECT id, 1, now(), now() FROM realm.environment
            """)
        let before = try run(["templates", "acme"])
        #expect(before.output.contains("wbsElements"))
        let result = try declare(leave)
        #expect(result.status == 0 && result.output == "acme has Leave\n", "\(result.errors)")
        let shown = try run(["templates", "acme"])
        #expect(shown.output.contains("TimeSheetTaskType") && !shown.output.contains("wbsElements"))
        let due = try connection.run(
            "SELECT count(*) FROM poll.run WHERE full_started_at IS NULL AND started_at = '-infinity'")
        #expect(try due[0].value(0, as: Int64.self) == 1)
        let audit = try connection.run(
            "SELECT detail->>'changed' FROM access.audit WHERE subject = 'acme' ORDER BY id DESC LIMIT 1")
        #expect(try audit[0].value(0) == "templates")
        // The output is valid input, and an edit keeps the templates.
        #expect(try declare(shown.output).status == 0)
        #expect(try run(["edit", "acme", "--poll-interval", "60"]).status == 0)
        #expect(try run(["templates", "acme"]).output == shown.output)
        #expect(try run(["templates", "acme", "--built-in"]).status == 0)
        #expect(try run(["templates", "acme"]).output == before.output)
    }

    @Test func invalidTemplatesAreRejectedWithoutChanges() throws {
        for (json, problem) in [
            ("{", "templates.json"), (#"{"templates": [{"key": "a"}]}"#, "templates[0]: 'name' is missing"),
            (#"{"lists": [], "tempaltes": []}"#, "unknown key 'tempaltes'; allowed: lists, templates"),
            (#"{"templates": []}"#, "there are 0; allowed: 1 to 50"),
        ] {
            let result = try declare(json)
            #expect(result.status == 1 && result.errors.contains(problem), "\(result.errors)")
            #expect(result.errors.split(separator: "\n").count == 1)
        }
        #expect(try declare(leave, in: "other").errors.contains("economic has no field 'TimeSheetTaskType'"))
        #expect(try run(["templates", "unknown"]).errors.contains("environment unknown does not exist"))
        #expect(try run(["show", "acme"]).output.contains("the adapter's"))
    }

    @Test func fieldIsNotRenamedOnceEntriesExist() throws {
        let renamed = leave.replacingOccurrences(of: "\"Absence\"", with: "\"Fravær\"")
        #expect(try declare(leave).status == 0)
        #expect(try declare(renamed).status == 0)
        #expect(try declare(leave).status == 0)
        var connection = try Connection(conninfo)
        var directory = RealmDirectory()
        let id = EnvironmentID(
            rawValue: try connection.run("SELECT id FROM realm.environment WHERE name = 'acme'")[0].value(0))
        let realm = try #require(
            try directory.id(of: .user("ana@acme.example"), in: id, create: true, on: &connection))
        var batch = WriteBatch(environment: id)
        batch.put(ObjectKey(realm: realm, kind: .timeEntry, id: UUID()), try CanonicalJSON("{}"), decision: 0)
        _ = try batch.commit(on: &connection)
        let result = try declare(renamed)
        #expect(result.status == 1 && result.errors.contains("TimeSheetTaskType is called 'Absence'"))
        #expect(try declare(leave).status == 0)
        #expect(try run(["templates", "acme", "--built-in"]).status == 0)
    }

    @Test func newBackEndKindRemovesFormerSettings() throws {
        #expect(try declare(leave).status == 0)
        #expect(try run(["edit", "acme", "--backend-setting", "activityType=T1"]).status == 0)
        #expect(try run(["edit", "acme", "--backend", "economic"]).status == 0)
        #expect(try run(["templates", "acme"]).output.contains("projectNumber"))
        #expect(!(try run(["show", "acme"]).output.contains("activityType")))
    }

    @Test func adapterSettingsAreValidated() throws {
        let result = try run([
            "edit", "acme", "--backend-setting", "activityType=T1", "--backend-setting", "textLengthMax=200",
        ])
        #expect(result.status == 0, "\(result.errors)")
        #expect(try run(["edit", "acme", "--backend-setting", "closedProjectStatuses=42, 45"]).status == 0)
        let shown = try run(["show", "acme"]).output
        #expect(shown.contains("setting activityType") && shown.contains("T1") && shown.contains("42, 45"))
        #expect(try run(["edit", "acme", "--backend-setting", "activityType="]).status == 0)
        #expect(!(try run(["show", "acme"]).output.contains("activityType")))
        for (setting, problem) in [
            ("activityType", "--backend-setting is name=value, not activityType"),
            ("colour=red", "sap has no setting 'colour'; available: activityType, closedProjectStatuses"),
            ("pageRowsMax=0", "pageRowsMax must be a number from 2 to 5000, not '0'"),
            ("activityType=TOOLONG", "activityType must have at most 6 characters, not 7"),
        ] {
            let result = try run(["edit", "acme", "--backend-setting", setting])
            #expect(result.status == 1 && result.errors.contains(problem), "\(result.errors)")
        }
        #expect(try run(["edit", "other", "--backend-setting", "activityType=T1"]).status == 1)
    }
}
