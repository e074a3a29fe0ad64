import Foundation
import Model
import Postgres
import TestSupport
import Testing

/// `fieldpost environment defects logins`.
@Suite(.ownThreads) struct DefectLoginsTests {
    private let conninfo: String

    init() throws {
        conninfo = try makeFoundationDatabase()
        var connection = try Connection(conninfo)
        try EnvironmentRows(id: 1, name: "acme").insert(on: &connection)
    }

    private func run(_ json: String? = nil) throws -> Answer {
        try withFolder { folder in
            let file = folder.appendingPathComponent("logins.json")
            if let json { try Data(json.utf8).write(to: file) }
            return try fieldpost(
                ["environment", "defects", "logins", "acme", "--json"] + (json == nil ? [] : ["--file", file.path]),
                environment: ["FIELDPOST_DATABASE_URL": conninfo])
        }
    }

    @Test func whatIsGivenTakesThePlaceOfWhatIsStored() throws {
        #expect(try run().status == 0)
        let first = try run(#"{"Ana@example.com": "ana", "bo@example.com": "Bo"}"#)
        #expect(first.status == 0, "\(first.errors)")
        var connection = try Connection(conninfo)
        // As after a comparison.
        try connection.run(
            "INSERT INTO defect.run (environment_id, scope, run, started_at) VALUES (1, 'comparison', 3, now())")
        let second = try run(#"{"bo@example.com": "ana"}"#)
        #expect(second.status == 0, "\(second.errors)")
        let rows = try connection.run("SELECT email, login FROM backend.defect_login").decode(String.self, String.self)
        #expect(rows.count == 1 && rows[0] == ("bo@example.com", "ana"))
        let isAskedFor = try connection.run("SELECT asked_for FROM defect.run")[0].decode(Bool.self)
        #expect(isAskedFor, "all defects are compared again")
        #expect(try run().output.contains("bo@example.com"))
    }

    @Test(
        arguments: [
            (#"{"ana": "ana"}"#, "'ana' is no e-mail address"),
            (#"{"ana@example.com": ""}"#, "is no login name"),
            (#"{"ana@example.com": "a b"}"#, "is no login name"),
            (#"{"ana@example.com": "x", "bo@example.com": "x"}"#, "is of ana@example.com and of bo@example.com"),
            (#"{"ana@example.com": "x", "Ana@example.com": "y"}"#, "is there twice"),
            (#"["ana@example.com"]"#, "no JSON object"),
        ]) func whatCannotBeIsRefused(json: String, reason: String) throws
    {
        let answer = try run(json)
        #expect(answer.status != 0 && answer.errors.contains(reason), "\(answer.errors)")
        var connection = try Connection(conninfo)
        #expect(try connection.run("SELECT FROM backend.defect_login").count == 0)
    }
}
