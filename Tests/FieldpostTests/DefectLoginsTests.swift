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

    private func run(_ json: String? = nil) throws -> CommandResult {
        try withFolder { folder in
            let file = folder.appendingPathComponent("logins.json")
            if let json { try Data(json.utf8).write(to: file) }
            return try fieldpost(
                ["environment", "defects", "logins", "acme", "--json"] + (json == nil ? [] : ["--file", file.path]),
                environment: ["FIELDPOST_DATABASE_URL": conninfo])
        }
    }

    @Test func loginsFileReplacesStoredMapping() throws {
        #expect(try run().status == 0)
        let first = try run(#"{"Ana@example.com": "ana", "bo@example.com": "Bo"}"#)
        #expect(first.status == 0, "\(first.errors)")
        var connection = try Connection(conninfo)
        // The state after a comparison.
        try connection.run(
            "INSERT INTO defect.run (environment_id, scope, run, started_at) VALUES (1, 'comparison', 3, now())")
        let second = try run(#"{"bo@example.com": "ana"}"#)
        #expect(second.status == 0, "\(second.errors)")
        let rows = try connection.run("SELECT email, login FROM backend.defect_login").decode(String.self, String.self)
        #expect(rows.count == 1 && rows[0] == ("bo@example.com", "ana"))
        let isRequested = try connection.run("SELECT asked_for FROM defect.run")[0].decode(Bool.self)
        #expect(isRequested, "all defects are compared again")
        #expect(try run().output.contains("bo@example.com"))
    }

    @Test(
        arguments: [
            (#"{"ana": "ana"}"#, "'ana' is not an e-mail address"),
            (#"{"ana@example.com": ""}"#, "is not a login name"),
            (#"{"ana@example.com": "a b"}"#, "is not a login name"),
            (#"{"ana@example.com": "x", "bo@example.com": "x"}"#, "belongs to both ana@example.com and bo@example.com"),
            (#"{"ana@example.com": "x", "Ana@example.com": "y"}"#, "occurs twice"),
            (#"["ana@example.com"]"#, "not a JSON object"),
        ]) func invalidInputIsRejected(json: String, reason: String) throws
    {
        let result = try run(json)
        #expect(result.status != 0 && result.errors.contains(reason), "\(result.errors)")
        var connection = try Connection(conninfo)
        #expect(try connection.run("SELECT FROM backend.defect_login").count == 0)
    }
}
