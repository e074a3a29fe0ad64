import Foundation
import ImportSources
import Model
import ObjectStore
import Postgres
import TestSupport
import Testing

/// Files that people hand over, in the encodings and with the line ends that editors and spreadsheets write.
@Suite(.ownThreads) struct HandedFileTests {
    private let conninfo: String

    /// Without a back end, so that trees and tasks are imported.
    private static let other = ["--environment", "other"]

    init() throws {
        conninfo = try makeFoundationDatabase()
        var connection = try Connection(conninfo)
        let environment = try EnvironmentRows(id: 9, name: "other").insert(on: &connection)
        try connection.run("SELECT setval('realm.environment_id_seq', 10)")
        var directory = RealmDirectory()
        let path = try #require(RealmPath("/users/ana@example.com"))
        _ = try directory.id(of: path, in: environment, create: true, on: &connection)
    }

    /// A command, and the text of a file that it takes.
    private struct Handed {
        let name: String
        let arguments: [String]
        let text: String
        /// Read line by line: what is not UTF-8 is refused with its line.
        var isOfLines = false
    }

    private static let people = #"""
        [{"email": "ana@example.com",
          "reference": {"companyCode": "é"}}]
        """#
    private static let templates = #"""
        {"lists": [{"name": "absences", "nodes": [{"referenceId": "0100", "title": "Congé"}]}],
         "templates": [{"key": "leave", "name": "Leave", "type": "absence", "contexts": [
           {"name": "Absence", "list": "absences", "field": "TimeSheetTaskType"}]}]}
        """#
    private static let tree = #"""
        {"id": "de808bee-75f2-4ad1-b656-ac9b3bfec741", "name": "Fakturérbare", "hasDependencies": false,
         "dependencies": [], "children": []}
        """#
    private static let requests =
        ServiceRequest.columns.joined(separator: ",") + "\n"
        + "1-1,12/31/2017 11:59:58 PM,Bulky Ité,Open,NC,,,\"1 \"\"A\"\" ST, 90026\",90026,34.5,-118.25\n"
    private static let meeting =
        #"{"file": "a.yaml", "project": "A", "chair": "Douglas Mendizábal (redrobot)", "schedule": [{"time": "1600", "#
        + #""day": "Tuesday", "irc": "room", "frequency": "weekly", "start_date": 20190416}]}"# + "\n"

    private static let handed = [
        Handed(
            name: "people",
            arguments: [
                "environment", "add", "acme", "--domain", "example.com", "--issuer", "http://127.0.0.1:8081",
                "--audience", "fieldpost", "--jwks-url", "http://127.0.0.1:8081/jwks", "--backend", "sap",
                "--backend-url", "http://127.0.0.1:8200", "--backend-user", "FIELDPOST",
                "--backend-password-variable", "SAP_PASSWORD", "--people",
            ], text: people),
        Handed(name: "templates", arguments: ["environment", "templates", "acme", "--file"], text: templates),
        Handed(
            name: "logins", arguments: ["environment", "defects", "logins", "acme", "--file"],
            text: "{\"ana@example.com\":\n \"aña\"}\n"),
        Handed(
            name: "tree", arguments: ["import", "tree", "--realm", "/users/ana@example.com"] + other, text: tree),
        Handed(
            name: "objects", arguments: ["import", "objects"] + other,
            text: [1, 2].map { ImportWorld.task($0) + "\n\n" }.joined().replacing("Task ", with: "Tâche "),
            isOfLines: true),
        Handed(
            name: "meetings", arguments: ["import", "meetings", "--domain", "example.com"] + other,
            text: meeting + "\n",
            isOfLines: true),
        Handed(name: "la311", arguments: ["import", "la311"] + other, text: requests, isOfLines: true),
    ]

    private func run(_ handed: Handed, _ bytes: some Sequence<UInt8>) throws -> (answer: Answer, path: String) {
        try withFolder { folder in
            let path = folder.appendingPathComponent(handed.name).path
            try Data(bytes).write(to: URL(filePath: path))
            let answer = try fieldpost(handed.arguments + [path], environment: ["FIELDPOST_DATABASE_URL": conninfo])
            return (answer, path)
        }
    }

    /// Brings all of it, with files as they should be.
    private func begin() throws {
        for handed in Self.handed {
            let answer = try run(handed, handed.text.utf8).answer
            try #require(answer.status == 0, "\(handed.name): \(answer)")
        }
    }

    private func stored() throws -> [String] {
        var connection = try Connection(conninfo)
        return try connection.run(
            """
            SELECT concat_ws(' ', kind, id, fields) FROM realm.object
            UNION ALL SELECT concat_ws(' ', email, reference) FROM backend.person
            UNION ALL SELECT concat_ws(' ', email, login) FROM backend.defect_login ORDER BY 1
            """
        ).decode(String.self)
    }

    @Test func marksAndLineEndsChangeNothing() throws {
        try begin()
        let before = try stored()
        for handed in Self.handed {
            let lines = handed.text.replacing("\n", with: "\r\n")
            for text in ["\u{FEFF}" + handed.text, lines, "\u{FEFF}" + lines] {
                let answer = try run(handed, text.utf8).answer
                #expect(answer.status == 0, "\(handed.name): \(answer)")
            }
            #expect(try stored() == before, "\(handed.name)")
        }
    }

    @Test func otherEncodingsAreNamed() throws {
        try begin()
        let before = try stored()
        for handed in Self.handed {
            let (little, big) = (handed.text.data(using: .utf16LittleEndian), handed.text.data(using: .utf16BigEndian))
            let wide = try #require(handed.text.data(using: .utf32LittleEndian))
            let (littleEndian, bigEndian) = (try #require(little), try #require(big))
            for (bytes, encoding) in [
                (Data([0xFF, 0xFE]) + littleEndian, "UTF-16"), (Data([0xFE, 0xFF]) + bigEndian, "UTF-16"),
                (littleEndian, "UTF-16"), (bigEndian, "UTF-16"), (Data([0xFF, 0xFE, 0, 0]) + wide, "UTF-32"),
            ] {
                let (answer, path) = try run(handed, bytes)
                let expected = "\(path) is \(encoding); it must be UTF-8: save it as UTF-8, or convert it with: iconv"
                #expect(answer.status == 1 && answer.errors.contains(expected), "\(handed.name): \(answer)")
                #expect(answer.errors.split(separator: "\n").count == 1)
            }
            let (answer, path) = try run(handed, try #require(handed.text.data(using: .isoLatin1)))
            #expect(answer.status == 1, "\(handed.name): \(answer)")
            #expect(handed.isOfLines || answer.errors.contains("\(path) is not UTF-8"), "\(handed.name): \(answer)")
        }
        #expect(try stored() == before)
    }

    /// A spreadsheet writes semicolons where the comma is the decimal sign.
    @Test(arguments: [";", "\t"]) func columnsMayHaveOtherSeparators(separator: String) throws {
        try begin()
        let before = try stored()
        let handed = try #require(Self.handed.last)
        let lines = handed.text.split(separator: "\n")
        let quoted = try #require(lines[1].firstRange(of: "\"1 \"\"A\"\" ST, 90026\""))
        let row =
            lines[1][..<quoted.lowerBound].replacing(",", with: separator) + lines[1][quoted]
            + lines[1][quoted.upperBound...].replacing(",", with: separator)
        let text = "\u{FEFF}" + lines[0].replacing(",", with: separator) + "\r\n" + row + "\r\n"
        let answer = try run(handed, text.utf8).answer
        #expect(answer.status == 0, "\(answer)")
        #expect(try stored() == before)
        let unknown = try run(handed, "a:b\n1:2\n".utf8).answer
        #expect(unknown.errors.contains("commas, semicolons or tabs separate columns"), "\(unknown)")
    }
}
