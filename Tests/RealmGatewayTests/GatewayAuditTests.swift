import Audit
import Essentials
import Foundation
import HTTPClient
import Model
import ObjectStore
import Postgres
import TestSupport
import Testing

@testable import RealmGateway

/// Audit records of logins, rejections and permission changes.
@Suite(.ownThreads) struct GatewayAuditTests {
    private func records(_ fixture: GatewayFixture) throws -> [[String]] {
        try fixture.withDatabase { connection in
            try connection.run("SELECT actor, action, subject, address FROM access.audit ORDER BY id").map { row in
                try (0..<4).map { try row.value($0, as: String.self) }
            }
        }
    }

    private func logIn(_ fixture: GatewayFixture, _ email: String, subject: String, from address: String) async throws {
        let token = try await fixture.keys.token(email, subject: subject)
        _ = try await fixture.client.send(
            Request(
                fixture.url("/v1/realms"),
                headers: [("Authorization", "Bearer \(token)"), ("X-Forwarded-For", address)]))
    }

    @Test func bindingsAndRejectionsAreAuditedOnce() async throws {
        try await withGateway(count: 2) { fixture in
            for _ in 0..<2 {
                try await logIn(fixture, "ana@example.com", subject: "1", from: "10.9.9.9")
                try await logIn(fixture, "ana@example.com", subject: "2", from: "10.9.9.9")
            }
            // Without a proxy, any client can set the header: it is ignored.
            let issuer = GatewayFixture.issuer
            #expect(
                try records(fixture) == [
                    ["ana@example.com", "login.bound", "\(issuer) 1", "127.0.0.1"],
                    ["ana@example.com", "login.refused", "\(issuer) 2", "127.0.0.1"],
                ])
        }
    }

    @Test func proxyHeaderGivesTheClientsAddress() async throws {
        try await withGateway(proxyCount: 1) { fixture in
            try await logIn(fixture, "ana@example.com", subject: "1", from: "6.6.6.6, 10.9.9.9")
            try await logIn(fixture, "ben@example.com", subject: "2", from: "2001:db8::7")
            try await logIn(fixture, "cho@example.com", subject: "3", from: "<script>")
            #expect(try records(fixture).map { $0[3] } == ["10.9.9.9", "2001:db8::7", "127.0.0.1"])
        }
    }

    /// Every change of permissions gets a record, by any caller, and no other change does.
    @Test func permissionChangesAreAudited() async throws {
        try await withGateway { fixture in
            let key = try fixture.addIntegration("books")
            let books = GatewayDevice(fixture, bearer: key)
            let ana = try await fixture.device("ana@example.com", role: .admin)
            let ben = try await fixture.device("ben@example.com")
            let (me, other) = (try fixture.person("ana@example.com"), try fixture.person("ben@example.com"))
            let (team, note, user, catalogue) = (UUID(), UUID(), UUID(), UUID())
            let membership = Membership.id(of: other, in: team)
            let pair = "{\"person\":\"\(other.text)\",\"team\":\"\(team)\"}"
            var results = try await ana.send([
                await ana.mutation("put", team, "{\"name\":\"t\"}", kind: "Team", in: "/common"),
                await ana.mutation("put", membership, pair, kind: "Membership", in: "/common"),
                await ana.mutation("put", membership, pair, kind: "Membership", in: "/common"),
                await ana.mutation("patch", other, "{\"role\":\"worker\"}", kind: "Person", in: "/common"),
                await ana.mutation("delete", membership, kind: "Membership", in: "/common"),
            ]).results
            let share = Share.id(of: other, with: me)
            let emails = ["ana@example.com", "ben@example.com"]
            try fixture.makeShare(share, owner: other, recipient: me, emails: emails)
            try fixture.put(.note, note, "{\"title\":\"n\"}", in: .share(share))
            let path = RealmPath.share(share).description
            let (realm, bens) = (await ana.realm, await ben.realm)
            let link = SharedItem.id(of: note, with: me)
            let fields = "{\"kind\":\"Note\",\"item\":\"\(note)\",\"recipient\":\"\(me)\"}"
            results += try await ben.send([
                await ben.mutation("put", note, "{\"title\":\"n\"}", kind: "Note", in: bens),
                await ben.mutation("put", link, fields, kind: "SharedItem", in: bens),
                await ben.mutation("put", link, fields, kind: "SharedItem", in: bens),
                await ben.mutation("delete", link, kind: "SharedItem", in: bens),
            ]).results
            results += try await ana.send([
                await ana.mutation("delete", note, kind: "Note", in: path),
                await ana.mutation("delete", share, kind: "Share", in: path),
            ]).results
            let stored = "{\"email\":\"ana@example.com\",\"name\":\"Ana\""
            results += try await books.send([
                await books.mutation("put", me, "{\"name\":\"Ana\"}", kind: "Person", in: "/common"),
                await books.mutation("put", user, stored + "}", kind: "User", in: realm),
                await books.mutation("put", user, stored + ",\"catalogue\":\"\(catalogue)\"}", kind: "User", in: realm),
            ]).results
            #expect(results.count == 14 && results.allSatisfy { $0.hasPrefix("accepted") }, "\(results)")
            let audited = try records(fixture).filter { !$0[1].hasPrefix("login") }.map { "\($0[0]) \($0[1]) \($0[2])" }
            let named = "person \(other.text) team \(team.text)"
            let shared = "item \(note.text) recipient \(me.text)"
            #expect(
                audited == [
                    "ana@example.com membership.added \(named)", "ana@example.com membership.removed \(named)",
                    "ben@example.com item.shared \(shared)", "ben@example.com item.unshared \(shared)",
                    "ana@example.com copy.removed item \(note.text) share \(share.text)",
                    "ana@example.com share.removed \(share.text) owner \(other.text) recipient \(me.text)",
                    "integration:books role.changed \(me.text)", "integration:books catalogue.changed \(realm)",
                ])
        }
    }

    /// Claims of a token cannot forge a line or hide the following ones.
    @Test func recordIsOneLineOfText() async throws {
        try await withGateway { fixture in
            let subject = "1\n2026-01-01 admin role.changed\u{1b}[2K\u{202e}"
            try await logIn(fixture, "ana@example.com", subject: subject, from: "")
            let record = try #require(try records(fixture).first)
            #expect(record[2] == "\(GatewayFixture.issuer) 1?2026-01-01 admin role.changed?[2K?")
        }
        let long = AuditRecord(
            actor: String(repeating: "x", count: 1_000), action: .bound, subject: "", address: "")
        #expect(long.actor.count == AuditRecord.textLengthMax)
    }
}
