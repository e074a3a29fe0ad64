import Foundation
import Identity
import Model
import Postgres
import Secrets
import TestSupport
import Testing

@testable import Sandbox

/// `fieldpost environment revoke` against the sandbox's identity provider.
@Suite(.ownThreads) struct RevokeTests {
    private let conninfo: String
    private let key = Data((0..<32).map { UInt8($0) }).base64EncodedString()
    private let acme = EnvironmentID(rawValue: 1)

    init() throws { conninfo = try makeFoundationDatabase() }

    @Test func revokeRemovesTokensAtProviderAndHere() async throws {
        try await withProvider { provider in
            try setUp(provider)
            let tokens = [provider.refreshToken(), provider.refreshToken(), provider.refreshToken()]
            try keep(tokens[0], of: "ana@example.com")
            try keep(tokens[1], of: "ana@example.com")
            try keep(tokens[2], of: "bo@example.com")
            let result = try await revoke("Ana@example.com")
            #expect(result.status == 0, "\(result.errors)")
            #expect(result.output.contains("revoked"))
            #expect(tokens.map(provider.has) == [false, false, true])
            #expect(try left() == ["bo@example.com"])
            #expect(try records() == ["token.revoked ana@example.com", "token.revoked ana@example.com"])
            #expect(try await revoke("Ana@example.com").output.contains("nothing to revoke"))
            let unknown = try await revoke("eve@example.com")
            #expect(unknown.status == 1 && unknown.errors.contains("eve@example.com is not one of the"))
        }
    }

    /// A token that may remain valid at the provider is kept, unless only local removal is requested.
    @Test func providerWithoutRevocationIsReported() async throws {
        try await withProvider { provider in
            try setUp(provider)
            provider.state.switches.hidesRevocation = true
            let token = provider.refreshToken()
            try keep(token, of: "ana@example.com")
            let result = try await revoke("--all")
            #expect(result.status == 1)
            #expect(result.errors.contains("has no revocation endpoint") && result.errors.contains("--local-only"))
            #expect(try left() == ["ana@example.com"])
            #expect(try records() == [])
            let removed = try await revoke("--all", "--local-only")
            #expect(removed.status == 0 && removed.output.contains("removed here only"), "\(removed.errors)")
            #expect(try left() == [] && provider.has(token))
            #expect(try records() == ["token.forgotten ana@example.com"])
        }
    }

    /// All tokens are revoked, even after unreadable ones.
    @Test func revokeAllIncludesUnreadableTokens() async throws {
        try await withProvider { provider in
            try setUp(provider)
            var connection = try Connection(conninfo)
            try connection.run(
                """
                INSERT INTO onboarding.refresh_token (environment_id, person_id, token)
                SELECT 1, 1, '\\x00' FROM generate_series(1, 1100)
                """)
            let token = provider.refreshToken()
            try keep(token, of: "bo@example.com")
            let result = try await revoke("--all", "--json")
            #expect(result.status == 1)
            let rows = try result.rows()
            #expect(rows.count == 1_101)
            #expect(rows.count { $0["isRemoved"] as? Bool == true } == 1)
            #expect(rows.first.flatMap { $0["detail"] as? String }?.contains("is not configured") == true)
            #expect(!provider.has(token))
            #expect(try records() == ["token.revoked bo@example.com"])
            #expect(try await revoke("--all", "--local-only").status == 0)
            #expect(try left() == [])
        }
    }

    @Test func unconfirmedRevocationKeepsToken() async throws {
        try await withProvider { provider in
            try setUp(provider)
            provider.state.switches.failure = .down
            provider.state.switches.failureAt = "revoke"
            try keep(provider.refreshToken(), of: "ana@example.com")
            let result = try await revoke("--all")
            #expect(result.status == 1 && result.output.contains("unavailable"), "\(result.errors)")
            #expect(try left() == ["ana@example.com"])
            #expect(try records() == [])
        }
    }

    private func revoke(_ arguments: String...) async throws -> CommandResult {
        try await withOwnThread {
            try fieldpost(
                ["environment", "revoke", "acme"] + arguments,
                environment: ["FIELDPOST_DATABASE_URL": conninfo, "FIELDPOST_SECRET_KEYS": key])
        }
    }

    private func setUp(_ provider: TestProvider) throws {
        let secret = Bytea(
            try SecretBox([key]).seal(TestProvider.client.secret, at: SecretContext.clientSecret(acme)))
        var connection = try Connection(conninfo)
        try EnvironmentRows(
            id: 1,
            provider: .init(
                issuer: provider.issuer("acme"), audience: "fieldpost", clientID: TestProvider.client.id,
                clientSecret: secret)
        ).insert(on: &connection)
        try connection.run([
            "INSERT INTO access.person (environment_id, id, email) VALUES (1, 1, 'ana@example.com')",
            "INSERT INTO access.person (environment_id, id, email) VALUES (1, 2, 'bo@example.com')",
        ])
    }

    private func keep(_ token: String, of email: String) throws {
        let person: Int32 = email.hasPrefix("ana") ? 1 : 2
        let sealed = Bytea(
            try SecretBox([key]).seal(token, at: SecretContext.refreshToken(acme, person: person)))
        var connection = try Connection(conninfo)
        try connection.run(
            """
            INSERT INTO onboarding.refresh_token (environment_id, person_id, token) VALUES (1, \(person), \(sealed))
            """)
    }

    /// The people with remaining tokens.
    private func left() throws -> [String] {
        var connection = try Connection(conninfo)
        return try connection.run(
            """
            SELECT p.email FROM onboarding.refresh_token t JOIN access.person p ON p.id = t.person_id
            WHERE t.revoked_at IS NULL OR t.token <> '' ORDER BY t.id
            """
        ).map { try $0.value(0) }
    }

    private func records() throws -> [String] {
        let result = try fieldpost(
            ["audit", "list", "--environment", "acme", "--json"], environment: ["FIELDPOST_DATABASE_URL": conninfo])
        return try result.rows().map { "\($0["action"] ?? "") \($0["subject"] ?? "")" }
    }
}
