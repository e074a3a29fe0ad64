import Foundation
import Model
import ObjectStore
import Postgres
import TestSupport
import Testing

/// `fieldpost environment templates`, and the adapter's further settings.
@Suite(.ownThreads) struct EnvironmentTemplatesTests {
    private let conninfo: String

    init() throws {
        conninfo = try makeFoundationDatabase()
        for (name, arguments) in [
            ("acme", ["--backend", "sap", "--backend-user", "FIELDPOST"]), ("other", ["--backend", "economic"]),
        ] {
            let answer = try run(
                [
                    "add", name, "--domain", name + ".example", "--issuer", "http://127.0.0.1:8081/" + name,
                    "--audience", "fieldpost", "--jwks-url", "http://127.0.0.1:8081/jwks", "--backend-url",
                    "http://127.0.0.1:8200", "--backend-password-variable", "PASSWORD",
                ] + arguments)
            try #require(answer.status == 0, "\(answer.errors)")
        }
    }

    private func run(_ arguments: [String]) throws -> Answer {
        try fieldpost(["environment"] + arguments, environment: ["FIELDPOST_DATABASE_URL": conninfo])
    }

    private func declare(_ json: String, in environment: String = "acme") throws -> Answer {
        var answer: Answer?
        try withFolder { folder in
            let file = folder.appendingPathComponent("templates.json")
            try json.write(to: file, atomically: true, encoding: .utf8)
            answer = try run(["templates", environment, "--file", file.path])
        }
        return try #require(answer)
    }

    private let leave = """
        {"lists": [{"name": "absences", "nodes": [{"referenceId": "0100", "title": "Leave"}]}],
         "templates": [{"key": "leave", "name": "Leave", "type": "absence", "contexts": [
           {"name": "Absence", "list": "absences", "field": "TimeSheetTaskType"}]}]}
        """

    @Test func whatIsDeclaredIsShownAndEverybodyIsComparedSoon() throws {
        var connection = try Connection(conninfo)
        try connection.run(
            """
            INSERT INTO poll.run (environment_id, run, started_at, full_started_at)
            SELECT id, 1, now(), now() FROM realm.environment
            """)
        let before = try run(["templates", "acme"])
        #expect(before.output.contains("wbsElements"))
        let answer = try declare(leave)
        #expect(answer.status == 0 && answer.output == "acme has Leave\n", "\(answer.errors)")
        let shown = try run(["templates", "acme"])
        #expect(shown.output.contains("TimeSheetTaskType") && !shown.output.contains("wbsElements"))
        let due = try connection.run(
            "SELECT count(*) FROM poll.run WHERE full_started_at IS NULL AND started_at = '-infinity'")
        #expect(try due[0].value(0, as: Int64.self) == 1)
        let audit = try connection.run(
            "SELECT detail->>'changed' FROM access.audit WHERE subject = 'acme' ORDER BY id DESC LIMIT 1")
        #expect(try audit[0].value(0) == "templates")
        // What is shown can be given again, and an edit leaves it.
        #expect(try declare(shown.output).status == 0)
        #expect(try run(["edit", "acme", "--poll-interval", "60"]).status == 0)
        #expect(try run(["templates", "acme"]).output == shown.output)
        #expect(try run(["templates", "acme", "--built-in"]).status == 0)
        #expect(try run(["templates", "acme"]).output == before.output)
    }

    @Test func whatCannotWorkIsSaidAndChangesNothing() throws {
        for (json, problem) in [
            ("{", "templates.json"), (#"{"templates": [{"key": "a"}]}"#, "templates[0]: 'name' is missing"),
            (#"{"lists": [], "tempaltes": []}"#, "there is no 'tempaltes' here; there are lists, templates"),
            (#"{"templates": []}"#, "there are 0, and can be 1 to 50"),
        ] {
            let answer = try declare(json)
            #expect(answer.status == 1 && answer.errors.contains(problem), "\(answer.errors)")
            #expect(answer.errors.split(separator: "\n").count == 1)
        }
        #expect(try declare(leave, in: "other").errors.contains("economic has no field 'TimeSheetTaskType'"))
        #expect(try run(["templates", "nobody"]).errors.contains("there is no environment nobody"))
        #expect(try run(["show", "acme"]).output.contains("the adapter's"))
    }

    @Test func aFieldKeepsItsNameOnceThereAreEntries() throws {
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
        let answer = try declare(renamed)
        #expect(answer.status == 1 && answer.errors.contains("TimeSheetTaskType is called 'Absence'"))
        #expect(try declare(leave).status == 0)
        #expect(try run(["templates", "acme", "--built-in"]).status == 0)
    }

    @Test func anotherKindOfBackEndHasNothingOfTheOneBefore() throws {
        #expect(try declare(leave).status == 0)
        #expect(try run(["edit", "acme", "--backend-setting", "activityType=T1"]).status == 0)
        #expect(try run(["edit", "acme", "--backend", "economic"]).status == 0)
        #expect(try run(["templates", "acme"]).output.contains("projectNumber"))
        #expect(!(try run(["show", "acme"]).output.contains("activityType")))
    }

    @Test func settingsAreTheAdaptersAndChecked() throws {
        let answer = try run([
            "edit", "acme", "--backend-setting", "activityType=T1", "--backend-setting", "textLengthMax=200",
        ])
        #expect(answer.status == 0, "\(answer.errors)")
        #expect(try run(["edit", "acme", "--backend-setting", "closedProjectStatuses=42, 45"]).status == 0)
        let shown = try run(["show", "acme"]).output
        #expect(shown.contains("setting activityType") && shown.contains("T1") && shown.contains("42, 45"))
        #expect(try run(["edit", "acme", "--backend-setting", "activityType="]).status == 0)
        #expect(!(try run(["show", "acme"]).output.contains("activityType")))
        for (setting, problem) in [
            ("activityType", "--backend-setting is name=value, not activityType"),
            ("colour=red", "sap has no setting 'colour'; there are activityType, closedProjectStatuses"),
            ("pageRowsMax=0", "pageRowsMax is a number from 2 to 5000, not '0'"),
            ("activityType=TOOLONG", "activityType has at most 6 characters, not 7"),
        ] {
            let answer = try run(["edit", "acme", "--backend-setting", setting])
            #expect(answer.status == 1 && answer.errors.contains(problem), "\(answer.errors)")
        }
        #expect(try run(["edit", "other", "--backend-setting", "activityType=T1"]).status == 1)
    }
}
