import Essentials
import Foundation
import ImportSources
import Model
import Postgres
import TestSupport
import Testing

@testable import Fieldpost

/// `fieldpost import la311` and `fieldpost import meetings`.
@Suite(.ownThreads) struct ImportRowsTests {
    private typealias World = ImportFixture

    private static let header = ServiceRequest.columns.joined(separator: ",")

    private static func row(_ number: String, _ status: String, crew: String, due: String = "") -> String {
        let closed = status == "Open" ? "" : "01/02/2018 03:04:05 PM"
        return #"\#(number),12/31/2017 11:59:58 PM,Bulky Items,\#(status),\#(crew),\#(due),\#(closed),"#
            + #""1 ""A"" ST, 90026",90026,34.5,-118.25"#
    }

    @Test func serviceRequestsAreImportedAsTasks() throws {
        let world = try World()
        let rows = [
            Self.header, Self.row("1-1", "Closed", crew: "NC", due: "01/03/2018 12:00:00 AM"),
            Self.row("1-2", "Open", crew: " NC "), Self.row("1-3", "Referred Out", crew: "HB"),
            Self.row("1-4", "Cancelled", crew: "WV"), Self.row("1-5", "Closed", crew: ""),
            Self.row("1-6", "Lost", crew: "X"), "1-7", Self.row("1-8", "Open", crew: " NC ", due: "soon"),
            Self.row("1-9", "Cancelled", crew: "NC", due: "never"),
        ]
        let result = try world.bring("la311", rows, ["--json"])
        #expect(result.status == 1)
        let all = try #require(try JSONSerialization.jsonObject(with: Data(result.output.utf8)) as? [String: Any])
        #expect(
            all["rows"] as? [String: Int] == [
                "teams": 3, "tasks completed": 2, "tasks open": 1, "tasks referred out": 1, "requests cancelled": 1,
                "tasks without team": 2, "tasks without coordinates": 0, "tasks without due date": 3,
            ])
        #expect(all["created"] as? Int == 7 && all["refused"] as? Int == 4 && all["lines"] as? Int == 9)
        #expect(
            (all["problems"] as? [[String: Any]])?.compactMap { $0["reason"] as? String } == [
                "unknown 'Status': 'Lost'", "the number of values is not that of the columns",
                "'ServiceDate' is 'soon', not MM/DD/YYYY hh:mm:ss AM or PM",
                "'ServiceDate' is 'never', not MM/DD/YYYY hh:mm:ss AM or PM",
            ])
        let task = try world.query(
            "SELECT fields FROM store.object WHERE id = \(ServiceRequest.taskID("1-1"))")
        #expect(
            task == [
                #"{"team": "\#(ServiceRequest.teamID("NC").text)", "place": {"street": "1 \"A\" ST", "#
                    + #""latitude": 34.5, "longitude": -118.25, "postalCode": "90026"}, "title": "Bulky Items", "#
                    + #""dueDate": "2018-01-03T08:00:00.000Z", "isCompleted": true, "#
                    + #""creationDate": "2018-01-01T07:59:58.000Z", "completionDate": "2018-01-02T23:04:05.000Z", "#
                    + #""taskDescription": "1-1"}"#
            ])
        // A team is written before the first task that names it.
        #expect(
            try world.query(
                """
                SELECT count(*)::text FROM store.object t
                JOIN store.object o ON o.fields LIKE '%' || t.id::text || '%'
                WHERE t.kind = \(Kind.team.number) AND o.position < t.position
                """) == ["0"])
        let position = try world.position()
        #expect(try World.figures(try world.bring("la311", rows, ["--json"]))["unchanged"] == 7)
        #expect(try world.position() == position)
    }

    @Test func malformedFileIsRejected() throws {
        let world = try World()
        let result = try world.bring("la311", ["a,b"])
        #expect(result.status == 1 && result.errors.contains("the first row has no column 'SRNumber'"))
        try withFolder { folder in
            let file = folder.appendingPathComponent("x.gz")
            try Data([0x1F, 0x8B, 8, 0]).write(to: file)
            for (command, options) in [("objects", []), ("la311", []), ("meetings", ["--domain", "acme.example"])] {
                let result = try world.run(command, file.path, options)
                #expect(result.status == 1 && result.errors.contains("is compressed: pipe it with zcat"))
                #expect(result.errors.split(separator: "\n").count == 1)
            }
        }
        #expect(try world.run("objects", "/nowhere").errors.contains("cannot read /nowhere"))
        for arguments in [
            ["objects"], ["objects", "x", "--problems", "-1"], ["meetings", "x"], ["meetings", "x", "--domain", "no"],
            ["meetings", "x", "--domain", "acme.example", "--from", "today"], ["la311"],
        ] {
            let result = try fieldpost(["import"] + arguments, environment: ["FIELDPOST_DATABASE_URL": world.conninfo])
            #expect(result.status == 2 && result.errors.split(separator: "\n").count == 1, "\(arguments)")
        }
    }

    // MARK: Meetings

    private static func meeting(_ chair: String, start: String = #", "start_date": 20190416"#) -> String {
        """
        {"file": "a.yaml", "project": "A", "chair": "\(chair)", "schedule": [{"time": "1600", "day": "Tuesday", \
        "irc": "room", "frequency": "weekly"\(start)}]}
        """
    }

    @Test func meetingsAreImportedAsAppointmentsOfChairs() throws {
        let world = try World()
        let line = Self.meeting("Douglas Mendizábal (redrobot), Ian Y. Choi (ian), Douglas  MENDIZÁBAL (dm), ttx")
        let first = try world.bring("meetings", [line, Self.meeting(" (), "), "{}"], ["--domain", "acme.example"])
        #expect(first.errors.hasPrefix("line 2: it has no chair to own the appointment\nline 3: 'file' is missing\n"))
        let people: Statement = "SELECT email FROM access.person ORDER BY 1"
        #expect(
            try world.query(people) == [
                "douglas.mendizabal@acme.example", "ian.y.choi@acme.example", "ttx@acme.example",
            ])
        #expect(
            try world.query("SELECT fields FROM store.object WHERE kind = \(Kind.appointment.number)") == [
                #"{"why": "A (#room)", "when": "2019-04-16T16:00:00.000Z", "durationMinutes": 60}"#
            ])
        #expect(
            try world.query(
                """
                SELECT r.path FROM store.object o JOIN realm.realm r ON r.id = o.realm_id
                WHERE o.kind = \(Kind.sharedItem.number)
                """) == Array(repeating: "/users/douglas.mendizabal@acme.example", count: 2))
        let position = try world.position()
        #expect(try world.bring("meetings", [line], ["--domain", "acme.example"]).status == 0)
        #expect(try world.position() == position)
        let without = try world.bring("meetings", [Self.meeting("ttx", start: "")], ["--domain", "acme.example"])
        #expect(without.errors.contains("a time of the meeting has no start date; give --from"))
    }

    @Test func meetingEditIsImportedAtItsTime() throws {
        let world = try World()
        func edit(_ commit: String, _ operation: String, _ meeting: String) -> String {
            """
            {"file": "a.yaml", "commit": "\(commit)", "authored": "2014-02-24T22:13:41-06:00", "op": "\(operation)"\
            \(meeting.isEmpty ? "" : ", \"meeting\": \(meeting)")}
            """
        }
        let meeting = Self.meeting("ana")
        let lines = [edit("1", "add", meeting), edit("2", "change", meeting), edit("3", "delete", "")]
        let result = try world.bring("meetings", lines, ["--domain", "acme.example"])
        #expect(result.status == 0, "\(result.errors)")
        #expect(
            try world.query("SELECT fields::json->>'when' FROM store.object WHERE kind = \(Kind.appointment.number)")
                == Array(repeating: "2014-02-25T16:00:00.000Z", count: 2))
    }
}

/// Needs the environment variable `FIELDPOST_TEST_DATA` with the folder of the data; without it these tests are
/// skipped.
@Suite(
    .ownThreads,
    .enabled(
        if: ProcessInfo.processInfo.environment["FIELDPOST_TEST_DATA"] != nil,
        "FIELDPOST_TEST_DATA does not name the folder with tasks-la311-2017.csv.gz"))
struct ImportDataTests {
    private func bring(_ what: String, _ name: String, _ options: [String] = []) throws -> [[String: Int]] {
        let data = try #require(ProcessInfo.processInfo.environment["FIELDPOST_TEST_DATA"])
        let (world, file) = (try ImportFixture(), URL(filePath: data).appendingPathComponent(name))
        var results: [[String: Int]] = []
        try withFolder { folder in
            let plain = folder.appendingPathComponent("data")
            try Data().write(to: plain)
            let process = Process()
            process.executableURL = URL(filePath: "/usr/bin/env")
            process.arguments = ["gzip", "-dcf", "--", file.path]
            process.standardOutput = try FileHandle(forWritingTo: plain)
            try process.run()
            process.waitUntilExit()
            for _ in 0..<2 {
                let result = try world.run(what, plain.path, options + ["--json"])
                #expect(result.status == 0, "\(result.output.prefix(2_000))")
                let all = try JSONSerialization.jsonObject(with: Data(result.output.utf8)) as? [String: Any]
                let rows = all?["rows"] as? [String: Int] ?? [:]
                results.append(try ImportFixture.figures(result).merging(rows) { first, _ in first })
            }
        }
        return results
    }

    @Test func everyServiceRequestIsCounted() throws {
        let results = try bring("la311", "tasks-la311-2017.csv.gz")
        let rows = [
            "lines": 9_999, "refused": 0, "teams": 34, "tasks completed": 9_739, "tasks open": 5,
            "tasks referred out": 9, "requests cancelled": 246, "tasks without team": 163,
            "tasks without coordinates": 1_751, "tasks without due date": 470, "replaced": 0,
        ]
        #expect(results[0] == rows.merging(["created": 9_787, "unchanged": 0]) { first, _ in first })
        #expect(results[1] == rows.merging(["created": 0, "unchanged": 9_787]) { first, _ in first })
    }

    @Test func everyMeetingIsCounted() throws {
        let options = ["--domain", "acme.example", "--from", "2019-04-16"]
        let now = try bring("meetings", "calendar-openstack-meetings.jsonl", options)
        #expect(now[0]["lines"] == 85 && now[0]["appointments"] == 103 && now[0]["created"] == 157)
        #expect(now[1]["created"] == 0 && now[1]["unchanged"] == 157)
        let history = try bring("meetings", "calendar-openstack-meetings-history.jsonl.gz", options)
        #expect(history[0]["lines"] == 1_304 && history[0]["deletions, ignored"] == 183)
        #expect(history[0]["appointments"] == 1_340 && history[1]["created"] == 0)
    }
}
