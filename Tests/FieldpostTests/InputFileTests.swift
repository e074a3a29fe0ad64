import Foundation
import Model
import ObjectStore
import Postgres
import TestSupport
import Testing

/// Input files in the encodings and with the line ends of editors and spreadsheets.
@Suite(.ownThreads) struct InputFileTests {
    private let conninfo: String

    /// An environment without a back end, so that trees and tasks are imported.
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

    /// A command, and the text of its input file.
    private struct InputFile {
        let name: String
        let arguments: [String]
        let text: String
        /// Whether it is read line by line, so that invalid UTF-8 is rejected with its line.
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
    private static let inputs = [
        InputFile(
            name: "people",
            arguments: [
                "environment", "add", "acme", "--domain", "example.com", "--issuer", "http://127.0.0.1:8081",
                "--audience", "fieldpost", "--jwks-url", "http://127.0.0.1:8081/jwks", "--backend", "sap",
                "--backend-url", "http://127.0.0.1:8200", "--backend-user", "FIELDPOST",
                "--backend-password-variable", "SAP_PASSWORD", "--people",
            ], text: people),
        InputFile(name: "templates", arguments: ["environment", "templates", "acme", "--file"], text: templates),
        InputFile(
            name: "logins", arguments: ["environment", "defects", "logins", "acme", "--file"],
            text: "{\"ana@example.com\":\n \"aña\"}\n"),
        InputFile(
            name: "tree", arguments: ["import", "tree", "--realm", "/users/ana@example.com"] + other, text: tree),
        InputFile(
            name: "objects", arguments: ["import", "objects"] + other,
            text: [1, 2].map { ImportFixture.task($0) + "\n\n" }.joined().replacing("Task ", with: "Tâche "),
            isOfLines: true),
    ]

    private func run(_ input: InputFile, _ bytes: some Sequence<UInt8>) throws -> (result: CommandResult, path: String)
    {
        try withFolder { folder in
            let path = folder.appendingPathComponent(input.name).path
            try Data(bytes).write(to: URL(filePath: path))
            let result = try fieldpost(input.arguments + [path], environment: ["FIELDPOST_DATABASE_URL": conninfo])
            return (result, path)
        }
    }

    /// Imports all files in their original form.
    private func begin() throws {
        for input in Self.inputs {
            let result = try run(input, input.text.utf8).result
            try #require(result.status == 0, "\(input.name): \(result)")
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

    @Test func byteOrderMarksAndLineEndsAreIgnored() throws {
        try begin()
        let before = try stored()
        for input in Self.inputs {
            let lines = input.text.replacing("\n", with: "\r\n")
            for text in ["\u{FEFF}" + input.text, lines, "\u{FEFF}" + lines] {
                let result = try run(input, text.utf8).result
                #expect(result.status == 0, "\(input.name): \(result)")
            }
            #expect(try stored() == before, "\(input.name)")
        }
    }

    @Test func otherEncodingsAreRejectedByName() throws {
        try begin()
        let before = try stored()
        for input in Self.inputs {
            let (little, big) = (input.text.data(using: .utf16LittleEndian), input.text.data(using: .utf16BigEndian))
            let wide = try #require(input.text.data(using: .utf32LittleEndian))
            let (littleEndian, bigEndian) = (try #require(little), try #require(big))
            for (bytes, encoding) in [
                (Data([0xFF, 0xFE]) + littleEndian, "UTF-16"), (Data([0xFE, 0xFF]) + bigEndian, "UTF-16"),
                (littleEndian, "UTF-16"), (bigEndian, "UTF-16"), (Data([0xFF, 0xFE, 0, 0]) + wide, "UTF-32"),
            ] {
                let (result, path) = try run(input, bytes)
                let expected = "\(path) is \(encoding); it must be UTF-8: save it as UTF-8, or convert it with: iconv"
                #expect(result.status == 1 && result.errors.contains(expected), "\(input.name): \(result)")
                #expect(result.errors.split(separator: "\n").count == 1)
            }
            let (result, path) = try run(input, try #require(input.text.data(using: .isoLatin1)))
            #expect(result.status == 1, "\(input.name): \(result)")
            #expect(input.isOfLines || result.errors.contains("\(path) is not UTF-8"), "\(input.name): \(result)")
        }
        #expect(try stored() == before)
    }
}
