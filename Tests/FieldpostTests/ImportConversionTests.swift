import DataFiles
import Essentials
import Foundation
import Model
import Postgres
import TestSupport
import Testing

@testable import Workbench

/// `workbench convert`, whose lines `fieldpost import objects` imports.
@Suite(.ownThreads) struct ImportConversionTests {
    private static let header = ServiceRequest.columns.joined(separator: ",") + "\n"

    static func row(_ number: String, _ status: String, crew: String, due: String = "") -> String {
        let closed = status == "Open" ? "" : "01/02/2018 03:04:05 PM"
        return #"\#(number),12/31/2017 11:59:58 PM,Bulky Items,\#(status),\#(crew),\#(due),\#(closed),"#
            + #""1 ""A"" ST, 90026",90026,34.5,-118.25"# + "\n"
    }

    private static func requests(_ rows: [String]) throws -> ImportLines {
        try ImportLines(ServiceRequest.rows(of: CSV((header + rows.joined()).utf8)))
    }

    private static func meetings(_ lines: [String], from: Day? = nil) throws -> ImportLines {
        let calendar = MeetingCalendar(domain: "acme.example", from: from)
        return try ImportLines(meetings: Array(lines.joined(separator: "\n").utf8), by: calendar)
    }

    /// Imports the lines, and returns the counts.
    private func bring(_ lines: ImportLines, into world: ImportFixture) throws -> [String: Int] {
        let text = String(decoding: lines.bytes, as: UTF8.self).split(separator: "\n").map(String.init)
        let result = try world.bring("objects", text, ["--json"])
        #expect(result.status == 0, "\(result.output.prefix(2_000))")
        return try ImportFixture.figures(result)
    }

    @Test func serviceRequestsAreImportedAsTasks() throws {
        let world = try ImportFixture()
        let lines = try Self.requests([
            Self.row("1-1", "Closed", crew: "NC", due: "01/03/2018 12:00:00 AM"),
            Self.row("1-2", "Open", crew: " NC "), Self.row("1-3", "Referred Out", crew: "HB"),
            Self.row("1-4", "Cancelled", crew: "WV"), Self.row("1-5", "Closed", crew: ""),
        ])
        #expect(try bring(lines, into: world)["created"] == 7)
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
        #expect(try bring(lines, into: world)["unchanged"] == 7)
        #expect(try world.position() == position)
    }

    @Test(arguments: [
        (row("1-6", "Lost", crew: "X"), "record 2: unknown 'Status': 'Lost'"),
        (row("1-8", "Open", crew: "X", due: "soon"), "record 2: 'ServiceDate' is 'soon', not MM/DD/YYYY"),
        ("1-7\n", "record 2: 1 fields instead of 11"),
    ]) func invalidRowIsRejectedWithItsRecord(row: String, problem: String) {
        let error = #expect(throws: (any Error).self) { try Self.requests([row]) }
        #expect(error.map { "\($0)".hasPrefix(problem) } == true)
    }

    // MARK: Meetings

    static func meeting(_ chair: String, start: String = #", "start_date": 20190416"#) -> String {
        """
        {"file": "a.yaml", "project": "A", "chair": "\(chair)", "schedule": [{"time": "1600", "day": "Tuesday", \
        "irc": "room", "frequency": "weekly"\(start)}]}
        """
    }

    @Test func meetingsAreImportedAsAppointmentsOfChairs() throws {
        let world = try ImportFixture()
        let lines = try Self.meetings([
            Self.meeting("Douglas Mendizábal (redrobot), Ian Y. Choi (ian), Douglas  MENDIZÁBAL (dm), ttx")
        ])
        #expect(try bring(lines, into: world)["created"] == 6)
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
        #expect(try bring(lines, into: world)["unchanged"] == 6)
        #expect(try world.position() == position)
    }

    @Test(arguments: [
        (meeting(" (), "), "line 2: the meeting has no chair to own the appointment"),
        (meeting("ttx", start: ""), "line 2: a time of the meeting has no start date; give --from"),
        ("{}", "line 2: 'file' is missing"),
        (#"{"file": "a", "file": "b"}"#, "line 2: 'file': duplicate key (byte 15)"),
    ]) func invalidMeetingIsRejectedWithItsLine(line: String, problem: String) {
        let error = #expect(throws: PublicDataProblem.self) { try Self.meetings([Self.meeting("ana"), line]) }
        #expect(error?.description == problem)
    }

    @Test func meetingEditIsImportedAtItsTime() throws {
        let world = try ImportFixture()
        func edit(_ commit: String, _ operation: String, _ meeting: String) -> String {
            """
            {"file": "a.yaml", "commit": "\(commit)", "authored": "2014-02-24T22:13:41-06:00", "op": "\(operation)"\
            \(meeting.isEmpty ? "" : ", \"meeting\": \(meeting)")}
            """
        }
        let meeting = Self.meeting("ana")
        let lines = [edit("1", "add", meeting), edit("2", "change", meeting), edit("3", "delete", "")]
        #expect(try bring(Self.meetings(lines), into: world)["created"] == 3)
        #expect(
            try world.query("SELECT fields::json->>'when' FROM store.object WHERE kind = \(Kind.appointment.number)")
                == Array(repeating: "2014-02-25T16:00:00.000Z", count: 2))
    }

    /// Needs the folder with the data in the environment variable `FIELDPOST_TEST_DATA`.
    @Test(
        .enabled(
            if: ProcessInfo.processInfo.environment["FIELDPOST_TEST_DATA"] != nil,
            "FIELDPOST_TEST_DATA does not name the folder with tasks-la311-2017.csv.gz"))
    func publicDataAreImportedCompletely() throws {
        let folder = try #require(ProcessInfo.processInfo.environment["FIELDPOST_TEST_DATA"])
        let requests = try ImportLines(
            ServiceRequest.rows(of: CSV(DataFile.read("tasks-la311-2017.csv", in: folder))))
        // 246 of the 9,999 requests are cancelled.
        #expect(try Self.counts(of: requests) == ["Team": 34, "FieldTask": 9_753])
        let tasks = try ImportFixture()
        #expect(try bring(requests, into: tasks)["created"] == 9_787)
        let found = try tasks.query(
            """
            SELECT count(*) FILTER (WHERE f->>'isCompleted' = 'true') || ' completed, '
                || count(*) FILTER (WHERE f->>'team' IS NULL) || ' without a team, '
                || count(*) FILTER (WHERE f->'place'->>'latitude' IS NULL) || ' without coordinates, '
                || count(*) FILTER (WHERE f->>'dueDate' IS NULL) || ' without a due date'
            FROM (SELECT fields::json AS f FROM store.object WHERE kind = \(Kind.fieldTask.number)) AS tasks
            """)
        #expect(
            found == [
                "9739 completed, 163 without a team, 1751 without coordinates, 470 without a due date"
            ])
        #expect(try bring(requests, into: tasks)["unchanged"] == 9_787)

        let calendar = MeetingCalendar(domain: "acme.example", from: Day("2019-04-16"))
        for (name, expected) in [
            ("calendar-openstack-meetings.jsonl", ["Person": 112, "Appointment": 103, "SharedItem": 54]),
            ("calendar-openstack-meetings-history.jsonl", ["Person": 399, "Appointment": 1_340, "SharedItem": 436]),
        ] {
            let lines = try ImportLines(meetings: Array(DataFile.read(name, in: folder)), by: calendar)
            #expect(try Self.counts(of: lines) == expected, "\(name)")
            let total = expected.values.reduce(0, +)
            let world = try ImportFixture()
            #expect(try bring(lines, into: world)["created"] == total, "\(name)")
            #expect(try bring(lines, into: world)["unchanged"] == total, "\(name)")
        }
    }

    /// The number of lines of each kind.
    private static func counts(of lines: ImportLines) throws -> [String: Int] {
        struct Line: Decodable { let kind: String }
        return try lines.bytes.split(separator: UInt8(ascii: "\n")).reduce(into: [:]) { counts, line in
            let kind = try JSONDecoder().decode(Line.self, from: Data(line)).kind
            counts[kind, default: 0] += 1
        }
    }
}
