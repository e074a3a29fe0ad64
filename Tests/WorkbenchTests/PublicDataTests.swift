import Essentials
import Foundation
import TestSupport
import Testing

@testable import Workbench

/// Parsers of public data, and `workbench convert`.
@Suite(.ownThreads) struct PublicDataTests {
    @Test(
        arguments: [
            ("12/31/2017 11:59:58 PM", "2018-01-01T07:59:58.000Z"),
            ("01/03/2018 12:00:00 AM", "2018-01-03T08:00:00.000Z"),
            ("07/04/2018 12:00:00 PM", "2018-07-04T19:00:00.000Z"),
            ("03/11/2018 01:59:59 AM", "2018-03-11T09:59:59.000Z"),
            ("03/11/2018 03:00:00 AM", "2018-03-11T10:00:00.000Z"),
            ("11/04/2018 01:30:00 AM", "2018-11-04T08:30:00.000Z"),
            ("11/04/2018 02:00:00 AM", "2018-11-04T10:00:00.000Z"), ("02/30/2018 01:00:00 AM", nil),
            ("01/03/2018 13:00:00 PM", nil), ("01/03/2018 00:00:00 AM", nil), ("01/03/2018", nil), ("", nil),
            ("01/03/2018 10:00:00 Uhr", nil), ("1/-3/2018 10:00:00 AM", nil),
        ] as [(String, String?)]) func pacificTimeIsParsed(text: String, moment: String?)
    {
        #expect(PacificTime.timestamp(text)?.description == moment)
    }

    @Test(
        arguments: [
            ("1600", "Tuesday", "weekly", "2019-04-16", "2019-04-16T16:00"),
            ("800", "Mondays", nil, "2019-04-16", "2019-04-22T08:00"),
            ("2100 UTC", "Monday", "biweekly-odd", "2019-04-16", "2019-04-22T21:00"),
            ("2100", "Monday", "biweekly-even", "2019-04-16", "2019-04-29T21:00"),
            ("2100", "Monday", "quadweekly", "2019-04-16", "2019-05-13T21:00"),
            ("2100", "Monday", "quadweekly-alternate", "2019-04-16", "2019-04-29T21:00"),
            ("0900", "Friday", "first-friday", "2019-04-16", "2019-05-03T09:00"),
            ("0900", "Friday", "daily", "2019-04-16", "2019-04-16T09:00"),
            ("0900", "Thursday", "biweekly-odd", "2020-12-25", "2020-12-31T09:00"),
            ("9", "Friday", "weekly", "2019-04-16", nil), ("2460", "Friday", "weekly", "2019-04-16", nil),
            ("0900", "Someday", "weekly", "2019-04-16", nil), ("0900", "Friday", "yearly", "2019-04-16", nil),
        ] as [(String, String, String?, String, String?)])
    func meetingSlotHasFirstOccurrence(time: String, day: String, frequency: String?, from: String, moment: String?)
        throws
    {
        let slot = MeetingSlot(
            time: time, day: day, irc: nil, frequency: frequency, period: nil, startDate: nil, duration: nil)
        let first = try #require(Day(from))
        #expect((try? slot.occurrence(from: first))?.description == moment.map { $0 + ":00.000Z" })
    }

    /// Each problem quotes an excerpt of the value, even if one character has many bytes.
    @Test func problemsTruncateLongValues() {
        let long = "x" + String(repeating: "\u{301}", count: 20_000)
        func slot(_ time: String = "0900", _ day: String = "Friday", _ frequency: String? = nil) -> MeetingSlot {
            MeetingSlot(
                time: time, day: day, irc: nil, frequency: frequency, period: nil, startDate: nil, duration: nil)
        }
        let row = ["SRNumber": "1", "Status": "Open", "RequestType": "x", "ClosedDate": "01/03/2018 12:00:00 AM"]
        let readings: [() throws -> Void] = [
            { _ = try ServiceRequest { ["Status": long][$0] ?? row[$0] ?? "" } },
            { _ = try ServiceRequest { ["ClosedDate": long][$0] ?? row[$0] ?? "" } },
            { _ = try slot(long).occurrence(from: Day(daysSinceEpoch: 0)) },
            { _ = try slot("0900", long).occurrence(from: Day(daysSinceEpoch: 0)) },
            { _ = try slot("0900", "Friday", long).occurrence(from: Day(daysSinceEpoch: 0)) },
        ]
        for (number, reading) in readings.enumerated() {
            let problem = #expect(throws: PublicDataProblem.self) { try reading() }
            let text = problem?.description ?? ""
            #expect(text.unicodeScalars.contains("\u{301}"), "\(number)")
            #expect(text.utf8.count < 500, "\(number): \(text.utf8.count) bytes")
        }
    }

    // MARK: Commands

    @Test func convertPrintsLinesWithReferencedObjectsFirst() throws {
        let meeting = #"""
            {"file": "a.yaml", "project": "A", "chair": "Ana, Bo", "schedule": [
              {"time": "1600", "day": "Tuesday", "start_date": 20190416}]}
            """#.replacing("\n", with: "")
        try withFolder { folder in
            let file = folder.appendingPathComponent("meetings")
            try Data(meeting.utf8).write(to: file)
            let result = try workbench("convert", "meetings", file.path, "--domain", "acme.example")
            #expect(result.status == 0, "\(result.errors)")
            let lines = result.output.split(separator: "\n").map { line in
                (try? JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]) ?? [:]
            }
            #expect(lines.map { $0["kind"] as? String } == ["Person", "Person", "Appointment", "SharedItem"])
            #expect(lines.map { $0["email"] as? String } == ["ana@acme.example", "bo@acme.example", nil, nil])
        }
    }

    /// Separators of fields are commas, semicolons and tabs.
    @Test(arguments: ["a,b\n", "SRNumber:Status\n1:Open\n"]) func tableWithoutColumnIsRejected(text: String) throws {
        try withFolder { folder in
            let table = folder.appendingPathComponent("table")
            try Data(text.utf8).write(to: table)
            let problem = try workbench("convert", "la311", table.path)
            #expect(problem.status == 1 && problem.output.isEmpty)
            #expect(problem.errors == "workbench: the first record names no column 'SRNumber'\n")
        }
    }

    @Test(arguments: [
        ["meetings", "x"], ["meetings", "x", "--domain", "no"],
        ["meetings", "x", "--domain", "acme.example", "--from", "today"], ["la311"],
    ]) func invalidArgumentsAreRejected(arguments: [String]) throws {
        let result = try runExecutable("workbench", ["convert"] + arguments)
        #expect(result.status == 2 && result.errors.split(separator: "\n").count == 1, "\(result)")
    }
}
