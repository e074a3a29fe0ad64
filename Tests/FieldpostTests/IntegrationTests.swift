import Foundation
import Model
import Postgres
import TestSupport
import Testing

/// Integrations, roles and the audit log on the command line.
@Suite(.ownThreads) struct IntegrationTests {
    private let conninfo: String

    init() throws {
        conninfo = try makeFoundationDatabase()
        var connection = try Connection(conninfo)
        try connection.run([
            "INSERT INTO realm.environment (id, name) VALUES (1, 'acme')",
            "INSERT INTO access.person (environment_id, email) VALUES (1, 'ana@example.com')",
        ])
    }

    private func run(_ arguments: String...) throws -> CommandResult {
        try fieldpost(
            arguments, environment: ["FIELDPOST_DATABASE_URL": conninfo, "SSH_CONNECTION": "10.0.0.7 1 2 22"])
    }

    @Test func integrationKeyIsPrintedOnceAndStoredHashed() throws {
        let added = try run("environment", "integration", "add", "books")
        #expect(added.status == 0, "\(added.errors)")
        let key = added.output.trimmingCharacters(in: .whitespacesAndNewlines)
        #expect(key.hasPrefix("fpk_") && key.count == 47)
        var connection = try Connection(conninfo)
        let row = try connection.run("SELECT row_to_json(i)::text FROM access.integration i")[0]
        #expect(try !row.value(0, as: String.self).contains(key.dropFirst(4)))
        #expect(try row.value(0, as: String.self).contains("key_hash"))
        let second = try run("environment", "integration", "add", "books")
        #expect(second.status == 1 && second.errors.contains("remove it first") && second.output.isEmpty)
        #expect(try run("environment", "integration", "add", "erp", "--client-id", "erp-client").status == 0)
        let list = try run("environment", "integration", "list").output
        #expect(list.contains("a key") && list.contains("tokens of erp-client") && !list.contains(key))
        let rows = try run("environment", "integration", "list", "--json").rows()
        #expect(rows.contains { $0["clientId"] as? String == "erp-client" && $0["createdAt"] is String }, "\(rows)")
        try connection.run(
            """
            INSERT INTO access.provider (environment_id, issuer, audience, jwks_url, client_id)
            VALUES (1, 'http://idp', 'fieldpost', 'http://idp/keys', 'app')
            """)
        let login = try run("environment", "integration", "add", "app", "--client-id", "app")
        #expect(login.status == 1 && login.errors.contains("people's logins"))
        #expect(try run("environment", "integration", "add", "x", "--subject", "s").status != 0)
        #expect(try run("environment", "integration", "remove", "books").status == 0)
        #expect(try run("environment", "integration", "remove", "books").status == 1)
        let audit = try run("audit", "list", "--json").rows()
        #expect(
            audit.map { $0["action"] as? String } == ["integration.added", "integration.added", "integration.removed"])
        #expect(audit.allSatisfy { $0["address"] as? String == "10.0.0.7" && $0["environment"] as? String == "acme" })
        #expect(audit.allSatisfy { ($0["actor"] as? String)?.hasPrefix("cli:") == true })
    }

    @Test func roleCommandSetsFirstAdmin() throws {
        let unknown = try run("environment", "role", "admin", "eve@example.com")
        #expect(unknown.status == 1 && unknown.errors.contains("eve@example.com"))
        #expect(try run("environment", "role", "emperor", "ana@example.com").status != 0)
        let made = try run("environment", "role", "admin", "Ana@example.com")
        #expect(made.output == "ana@example.com is admin\n", "\(made.errors)")
        var connection = try Connection(conninfo)
        let roles = try connection.run(
            """
            SELECT o.fields->>'role' FROM realm.object o JOIN access.person p ON p.object_id = o.id
            WHERE o.kind = 'Person'
            """)
        #expect(try roles.map { try $0.value(0, as: String.self) } == ["admin"])
        #expect(try run("audit", "list", "--action", "role").output.contains("role.changed"))
        // A deleted Person is restored before the role is set; an unchanged role has no audit record.
        try connection.run("UPDATE store.object SET deleted = true, fields = NULL WHERE kind = \(Kind.person)")
        for _ in 0..<2 {
            #expect(
                try run("environment", "role", "manager", "ana@example.com").output == "ana@example.com is manager\n")
        }
        let fields = try connection.run("SELECT fields->>'role' FROM realm.object WHERE kind = 'Person'")
        #expect(try fields.map { try $0.value(0, as: String.self) } == ["manager"])
        #expect(try run("audit", "list", "--action", "role", "--json").rows().count == 2)
        #expect(try run("audit", "list", "--action", "login").output == "no audit records match\n")
        #expect(try run("audit", "prune", "--keep", "1h").status != 0)
        try connection.run("UPDATE access.audit SET happened_at = now() - interval '2 years'")
        #expect(try run("audit", "prune", "--keep", "400d").output == "2 records removed\n")
    }
}
