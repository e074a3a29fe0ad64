import Foundation
import ObjectStore
import Postgres
import TestSupport
import Testing

@testable import Fieldpost

@Suite(.ownThreads) struct RestoreTests {
    private func restore(_ conninfo: String, _ options: String...) throws -> CommandResult {
        try fieldpost(["restore", "--json"] + options, environment: ["FIELDPOST_DATABASE_URL": conninfo])
    }

    /// Creates a database whose timeline differs from the stored one.
    private func makeRestored() throws -> String {
        let conninfo = try makeFoundationDatabase()
        var connection = try Connection(conninfo)
        try connection.run("INSERT INTO realm.environment (name, position) VALUES ('acme', 10)")
        try connection.run("UPDATE realm.lineage SET timeline = timeline + 1")
        return conninfo
    }

    @Test func restoreStartsNewGeneration() throws {
        let conninfo = try makeRestored()
        var connection = try Connection(conninfo)
        let refused = try fieldpost("environment", "list", environment: ["FIELDPOST_DATABASE_URL": conninfo])
        #expect(refused.status == 1 && refused.errors.contains("run: fieldpost restore"), "\(refused.errors)")
        #expect(refused.errors.split(separator: "\n").count == 1)

        let result = try restore(conninfo)
        #expect(result.status == 0, "\(result.errors)")
        let row = try #require(try result.rows().first)
        #expect(row["environment"] as? String == "acme")
        #expect(try #require(row["generation"] as? Int) > 1 && #require(row["position"] as? Int) > 1 << 32)
        #expect(throws: PostgresError.self, "sessions from before are ended") { try connection.run("SELECT 1") }
        #expect(try connection.run("SELECT restored_at IS NOT NULL FROM realm.lineage")[0].value(0))
        let audit = try connection.run("SELECT subject FROM access.audit WHERE action = 'database.restored'")
        #expect(audit.count == 1)

        let again = try restore(conninfo)
        #expect(again.status == 1 && again.errors.contains("give --force"))
        #expect(try fieldpost("environment", "list", environment: ["FIELDPOST_DATABASE_URL": conninfo]).status == 0)
        let forced = try restore(conninfo, "--force")
        #expect(try #require(forced.rows().first?["generation"] as? Int) > #require(row["generation"] as? Int))
    }

    @Test func nothingLostKeepsGeneration() throws {
        let conninfo = try makeRestored()
        var connection = try Connection(conninfo)
        for _ in 0..<2 {
            let result = try restore(conninfo, "--nothing-lost")
            #expect(result.status == 0, "\(result.errors)")
            #expect(try result.rows().first?["generation"] as? Int == 1)
            #expect(try result.rows().first?["position"] as? Int == 10)
        }
        _ = try? connection.run("SELECT 1")
        #expect(try connection.run("SELECT restored_at IS NULL FROM realm.lineage")[0].value(0))
        _ = try Connection(conninfo, check: Lineage.check)
    }
}
