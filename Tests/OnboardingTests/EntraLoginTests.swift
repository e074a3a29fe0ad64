import Foundation
import Model
import Postgres
import TestSupport
import Testing

@testable import Onboarding
@testable import Sandbox

/// Logins at an emulator of Microsoft Entra ID, with each kind of address verification and attacks on it.
@Suite(.ownThreads) struct EntraLoginTests {
    private static let tenant = "6d1f9c2e-8a51-4f3b-9d0e-2b7c5a4e1f60"
    private static let personal = "9188040d-6c67-4c5b-b112-36a304b66dad"

    private func withEntra(
        _ addressVerification: String, _ body: @Sendable (OnboardingFixture) async throws -> Void
    ) async throws {
        let settings = """
            issuer = replace(issuer, '/acme', '/\(Self.tenant)/v2.0'),
                jwks_url = replace(jwks_url, '/acme/jwks', '/\(Self.tenant)/discovery/v2.0/keys'),
                audience = client_id, address_vouched_by = '\(addressVerification)'
            """
        try await withOnboarding(settings: settings, body)
    }

    /// Logs in and returns the problem's code, or `nil` and the device's token event.
    private func logIn(
        _ fixture: OnboardingFixture, _ person: IdentityPerson? = nil
    ) async throws -> (problem: String?, token: TestSocket.Event?) {
        if let person { fixture.identity.add(person) }
        let device = try await TestDevice(fixture)
        #expect(device.loginURL.contains("/\(Self.tenant)/oauth2/v2.0/authorize?"))
        let socket = try await device.connect()
        let page = try await TestBrowser(fixture: fixture).logIn(at: device.loginURL)
        if page.status == 200 { return (nil, try await socket.event("token")) }
        let event = try await socket.event("error")
        #expect(event.payload["code"] == page.problem && page.retry != nil)
        return (page.problem, nil)
    }

    private func names(_ fixture: OnboardingFixture) throws -> [String] {
        try fixture.withDatabase { connection in
            let rows = try connection.run("SELECT names FROM onboarding.token_claims")
            return rows.count == 1 ? try rows[0].value(0) : []
        }
    }

    /// The login name is the address, and the ID token is the device's: the access token has another audience.
    @Test func tenantAccountLogsIn() async throws {
        try await withEntra("issuer") { fixture in
            let (problem, token) = try await logIn(fixture)
            #expect(problem == nil)
            let claims = try #require(Self.claims(token?.payload["access_token"] ?? ""))
            #expect(claims["aud"] as? String == OnboardingFixture.clientID && claims["ver"] as? String == "2.0")
            #expect(claims["tid"] as? String == Self.tenant)
            #expect(claims["email"] == nil && claims["email_verified"] == nil)
            let subject = try fixture.withDatabase { connection in
                try connection.run("SELECT subject FROM access.person WHERE email = \(OnboardingFixture.known)")[0]
                    .value(0, as: String.self)
            }
            #expect(subject == claims["sub"] as? String && subject != OnboardingFixture.known)
            // Only the names of the token's claims are stored, for `fieldpost environment check`.
            let names = try names(fixture)
            #expect(names == claims.keys.sorted() && names.contains("preferred_username"))
            let row = try fixture.withDatabase { connection in
                try connection.run("SELECT c::text FROM onboarding.token_claims c")[0].value(0, as: String.self)
            }
            #expect(!row.contains("ana") && !row.contains(subject) && !row.contains(Self.tenant))
        }
    }

    private static func claims(_ token: String) -> [String: Any]? {
        let parts = token.split(separator: ".")
        guard parts.count == 3 else { return nil }
        var text = parts[1].replacingOccurrences(of: "-", with: "+").replacingOccurrences(of: "_", with: "/")
        while text.utf8.count % 4 != 0 { text += "=" }
        return Data(base64Encoded: text).flatMap { try? JSONSerialization.jsonObject(with: $0) } as? [String: Any]
    }

    /// Accounts with misleading claims: each is rejected, and the real person can log in afterwards.
    static let attacks: [(String, IdentityPerson)] = {
        let ana = IdentityPerson(email: OnboardingFixture.known)
        func changed(_ label: String, _ change: (inout IdentityPerson) -> Void) -> (String, IdentityPerson) {
            var person = ana
            change(&person)
            return (label, person)
        }
        return [
            changed("another tenant's") { $0.tenant = "7d1f9c2e-8a51-4f3b-9d0e-2b7c5a4e1f60" },
            changed("a personal account") { $0.tenant = personal },
            changed("a guest") { $0.provider = "live.com" },
            changed("a foreign domain") { $0.tokenEmail = "ana@evil.example" },
            changed("a homograph domain") { $0.tokenEmail = "ana@examp\u{04CF}e.com" },
            changed("a name of a foreign domain") { $0.preferredUsername = "ana@example.com.evil.example" },
            changed("a name that is no address") { $0.preferredUsername = "ana" },
        ]
    }()

    @Test(arguments: 0..<attacks.count) func foreignAccountIsRejected(index: Int) async throws {
        let (label, person) = Self.attacks[index]
        try await withEntra("issuer") { fixture in
            let attack = try await logIn(fixture, person)
            #expect(attack.problem == "email-unverified", "\(label)")
            #expect(try fixture.count("SELECT count(*) FROM access.person WHERE subject IS NOT NULL") == 0)
            let real = try await logIn(fixture, IdentityPerson(email: OnboardingFixture.known))
            #expect(real.problem == nil)
        }
    }

    /// Another tenant's provider signs with valid keys, but its issuer is not the environment's.
    @Test func providerOfAnotherTenantIsRejected() async throws {
        try await withEntra("issuer") { fixture in
            for tenant in [Self.personal, "7d1f9c2e-8a51-4f3b-9d0e-2b7c5a4e1f60"] {
                let device = try await TestDevice(fixture)
                let socket = try await device.connect()
                let url = device.loginURL.replacingOccurrences(of: Self.tenant, with: tenant)
                // The code is not one of the tenant's, or its token has another issuer.
                let page = try await TestBrowser(fixture: fixture).logIn(at: url)
                #expect(page.problem == "token-refused", "\(page.body)")
                #expect(try await socket.event("error").payload["code"] == "token-refused")
            }
            #expect(try fixture.count("SELECT count(*) FROM access.person WHERE subject IS NOT NULL") == 0)
            #expect(try names(fixture) == [])
        }
    }

    @Test func domainOwnerVerificationIsRequired() async throws {
        try await withEntra("xms_edov") { fixture in
            var person = IdentityPerson(email: OnboardingFixture.known, tokenEmail: OnboardingFixture.known)
            #expect(try await logIn(fixture, person).problem == "email-unverified", "absent")
            // The stored claim names show which one is missing.
            let stored = try names(fixture)
            #expect(stored.contains("email") && !stored.contains("xms_edov"))
            person.edov = false
            #expect(try await logIn(fixture, person).problem == "email-unverified", "false")
            person.edov = true
            #expect(try await logIn(fixture, person).problem == nil)
            #expect(try names(fixture).contains("xms_edov"))
        }
    }

    /// The ID token is the device's. The provider has no revocation endpoint, but the device can still be revoked.
    @Test func tenantDeviceRenewsUntilRevoked() async throws {
        try await withEntra("issuer") { fixture in
            try fixture.withDatabase { _ = try $0.run("UPDATE access.provider SET scopes = '{openid,offline_access}'") }
            var credential = try await TestDevice.logIn(fixture).credential
            for _ in 0..<2 {
                fixture.advance(seconds: 3_700)
                let renewed = try await fixture.renew(credential)
                let claims = try #require(Self.claims(try renewed["access_token"]))
                #expect(claims["aud"] as? String == OnboardingFixture.clientID)
                #expect(claims["exp"] as? Int64 ?? 0 > fixture.clock.now)
                credential = try renewed["credential"]
            }
            // The account became a guest: tokens that a login rejects are not renewed.
            fixture.identity.add(IdentityPerson(email: OnboardingFixture.known, provider: "live.com"))
            #expect(try await fixture.renew(credential).json["reason"] == "token-refused")
            fixture.identity.add(IdentityPerson(email: OnboardingFixture.known))
            let revoked = try await fixture.command("revoke", "acme", "--all")
            #expect(revoked.status == 1 && revoked.errors.contains("--local-only"), "\(revoked.errors)")
            #expect(try await fixture.renew(credential).json["reason"] == "ended")
        }
    }

    /// With the default setting.
    @Test func defaultVerificationRejectsEntraTokens() async throws {
        try await withEntra("email_verified") { fixture in
            let person = IdentityPerson(
                email: OnboardingFixture.known, tokenEmail: OnboardingFixture.known, edov: true)
            #expect(try await logIn(fixture, person).problem == "email-unverified")
            let names = try names(fixture)
            #expect(names.contains("xms_edov") && !names.contains("email_verified"))
        }
    }
}
