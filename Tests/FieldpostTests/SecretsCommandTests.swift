import BackendConnections
import Backends
import Foundation
import Identity
import Model
import Postgres
import Secrets
import Tenants
import TestSupport
import Testing

@Suite(.ownThreads) struct SecretsCommandTests {
    private let conninfo: String
    private let old = Data(repeating: 1, count: 32).base64EncodedString()
    private let new = Data(repeating: 2, count: 32).base64EncodedString()

    init() throws { conninfo = try makeFoundationDatabase() }

    private func seal(_ keys: String...) throws -> CommandResult {
        try fieldpost(
            "secrets", "seal", "--json",
            environment: [
                "FIELDPOST_DATABASE_URL": conninfo, "FIELDPOST_SECRET_KEYS": keys.joined(separator: ","),
            ])
    }

    private func counts(_ result: CommandResult) throws -> [[Int?]] {
        try result.rows().map { row in ["sealed", "current", "unreadable"].map { row[$0] as? Int } }
    }

    /// Adds two environments with secrets of each sort, and more refresh tokens than a page.
    private func addSecrets() throws {
        let box = try SecretBox([old])
        var connection = try Connection(conninfo)
        for id in [Int32(1), 2] {
            let environment = EnvironmentID(rawValue: id)
            let secret = Bytea(try box.seal("client-\(id)", at: SecretContext.clientSecret(environment)))
            let password = Bytea(try box.seal("password-\(id)", at: SecretContext.backendPassword(environment)))
            let account = Bytea(try box.seal("account-\(id)", at: SecretContext.defectAccount(environment)))
            let own = try box.seal("own-\(id)", at: SecretContext.personalDefectLogin(environment, realm: 9))
            let deliveries = try SecretContext.DeliverySecret.allCases.map {
                Bytea(try box.seal("\($0)-\(id)", at: SecretContext.delivery($0, in: environment)))
            }
            let tokens = try (1...600).map { number in
                Bytea(try box.seal("token-\(number)", at: SecretContext.refreshToken(environment, person: 7)))
            }
            try EnvironmentRows(
                id: id, name: "e\(id)",
                provider: .init(issuer: "http://127.0.0.1/\(id)", clientID: "c", clientSecret: secret),
                backend: .init(password: password)
            ).insert(on: &connection)
            try connection.run(
                OwnDefectLogin(user: "ana", sealed: Bytea(own)).save(of: 9, in: environment, decision: 0))
            try connection.run([
                "INSERT INTO access.person (environment_id, id, email) VALUES (\(id), 7, 'ana@example.com')",
                """
                INSERT INTO backend.defect_tracker (environment_id, server_url, repository, database_name,
                    record_type, user_name, secret, poll_interval_seconds)
                VALUES (\(id), 'https://compass.example', 'r', 'd', 'Defect', 'fieldpost', \(account), 300)
                """,
                """
                INSERT INTO backend.delivery (environment_id, webhook_hosts, webhook_secret, smtp_url, mail_from,
                    smtp_user, smtp_password, push_contact, push_public_key, push_key, apns_key, fcm_account)
                VALUES (\(id), '{a.b}', \(deliveries[0]), 'smtps://a.b', 'a@b.c', 'a', \(deliveries[1]),
                    'mailto:a@b.c', 'k', \(deliveries[2]), \(deliveries[3]), \(deliveries[4]))
                """,
                """
                INSERT INTO onboarding.refresh_token (environment_id, person_id, token)
                SELECT \(id), 7, t FROM unnest(\(tokens)) AS u(t)
                """,
            ])
        }
    }

    @Test func everySecretIsResealedOnce() throws {
        try addSecrets()
        let first = try seal(new, old)
        #expect(first.status == 0, "\(first.errors)")
        #expect(try counts(first) == Array(repeating: [2, 0, 0], count: 9) + [[1_200, 0, 0]])
        #expect(try counts(seal(new, old)) == Array(repeating: [0, 2, 0], count: 9) + [[0, 1_200, 0]])
        // The old key is no longer needed.
        let box = try SecretBox([new])
        var connection = try Connection(conninfo)
        for row in try connection.run(
            """
            SELECT p.environment_id, p.client_secret, b.password, d.secret, a.secret FROM access.provider p
            JOIN backend.connection b USING (environment_id) JOIN backend.defect_tracker d USING (environment_id)
            JOIN backend.defect_account a USING (environment_id)
            """)
        {
            let environment = EnvironmentID(rawValue: try row.value(0))
            let secrets = try (1...4).map { try row.value($0, as: Bytea.self).bytes }
            #expect(
                try box.openText(secrets[0], at: SecretContext.clientSecret(environment)) == "client-\(environment)")
            #expect(
                try box.openText(secrets[1], at: SecretContext.backendPassword(environment))
                    == "password-\(environment)")
            #expect(
                try box.openText(secrets[2], at: SecretContext.defectAccount(environment)) == "account-\(environment)")
            #expect(
                try box.openText(secrets[3], at: SecretContext.personalDefectLogin(environment, realm: 9))
                    == "own-\(environment)")
        }
        for (id, stored) in try connection.run(
            """
            SELECT environment_id, ARRAY[webhook_secret, smtp_password, push_key, apns_key, fcm_account]
            FROM backend.delivery
            """
        ).decode(EnvironmentID.self, [Bytea].self) {
            for (sealed, secret) in zip(stored, SecretContext.DeliverySecret.allCases) {
                #expect(try box.openText(sealed.bytes, at: SecretContext.delivery(secret, in: id)) == "\(secret)-\(id)")
            }
        }
        let tokens = try connection.run(
            "SELECT token FROM onboarding.refresh_token WHERE environment_id = 2 ORDER BY id"
        ).map { row in
            let sealed: Bytea = try row.value(0)
            return try box.openText(
                sealed.bytes, at: SecretContext.refreshToken(EnvironmentID(rawValue: 2), person: 7))
        }
        #expect(tokens == (1...600).map { "token-\($0)" })
        let audit = try fieldpost(
            ["audit", "list", "--action", "secrets", "--json"], environment: ["FIELDPOST_DATABASE_URL": conninfo])
        #expect(try audit.rows().map { $0["subject"] as? String } == ["1218", "0"])
    }

    /// An unreadable secret is kept; the rest is re-sealed.
    @Test func unreadableSecretIsCountedAndRetained() throws {
        try addSecrets()
        var connection = try Connection(conninfo)
        try connection.run("UPDATE access.provider SET client_secret = '\\x0102' WHERE environment_id = 1")
        let result = try seal(new, old)
        #expect(result.status == 1)
        #expect(try counts(result) == [[1, 0, 1]] + Array(repeating: [2, 0, 0], count: 8) + [[1_200, 0, 0]])
        let rows = try connection.run("SELECT client_secret FROM access.provider WHERE environment_id = 1")
        #expect(try rows[0].value(0, as: Bytea.self).bytes == [1, 2])
        #expect(try seal().errors.contains("FIELDPOST_SECRET_KEYS is not set"))
    }
}
