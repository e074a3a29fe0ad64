import Foundation
import HTTP
import Postgres
import Realms
import Testing

@testable import RealmGateway

/// Who came in, who did not, and from where.
@Suite struct GatewayAuditTests {
    private func records(_ fixture: GatewayFixture) throws -> [[String]] {
        try fixture.withDatabase { connection in
            try connection.run("SELECT actor, action, subject, address FROM access.audit ORDER BY id").map { row in
                try (0..<4).map { try row.value($0, as: String.self) }
            }
        }
    }

    private func come(_ fixture: GatewayFixture, _ email: String, subject: String, from address: String) async throws {
        let token = try await fixture.keys.token(email, subject: subject)
        _ = try await fixture.client.send(
            Request(
                fixture.url("/v1/realms"),
                headers: [("Authorization", "Bearer \(token)"), ("X-Forwarded-For", address)]))
    }

    @Test func bindingsAndRefusalsAreToldOnce() async throws {
        try await withGateway(count: 2) { fixture in
            for _ in 0..<2 {
                try await come(fixture, "ana@example.com", subject: "1", from: "10.9.9.9")
                try await come(fixture, "ana@example.com", subject: "2", from: "10.9.9.9")
            }
            // Without a proxy the header is anybody's to write: it does not count.
            let issuer = GatewayFixture.issuer
            #expect(
                try records(fixture) == [
                    ["ana@example.com", "login.bound", "\(issuer) 1", "127.0.0.1"],
                    ["ana@example.com", "login.refused", "\(issuer) 2", "127.0.0.1"],
                ])
        }
    }

    @Test func aProxySaysWhereItsClientsAre() async throws {
        try await withGateway(proxyCount: 1) { fixture in
            try await come(fixture, "ana@example.com", subject: "1", from: "6.6.6.6, 10.9.9.9")
            try await come(fixture, "ben@example.com", subject: "2", from: "2001:db8::7")
            try await come(fixture, "cho@example.com", subject: "3", from: "<script>")
            #expect(try records(fixture).map { $0[3] } == ["10.9.9.9", "2001:db8::7", "127.0.0.1"])
        }
    }

    /// What a token says cannot forge a line, or hide what follows.
    @Test func aRecordIsOneLineOfText() async throws {
        try await withGateway { fixture in
            let subject = "1\n2026-01-01 admin role.changed\u{1b}[2K\u{202e}"
            try await come(fixture, "ana@example.com", subject: subject, from: "")
            let record = try #require(try records(fixture).first)
            #expect(record[2] == "\(GatewayFixture.issuer) 1?2026-01-01 admin role.changed?[2K?")
        }
        let long = AuditRecord(
            actor: String(repeating: "x", count: 1_000), action: .bound, subject: "", address: "")
        #expect(long.actor.count == AuditRecord.textLengthMax)
    }
}
