import Foundation
import Model
import Postgres
import TestSupport
import Testing

@testable import Onboarding
@testable import Sandbox

/// Logins at a provider with the shape of Microsoft Entra ID: whoever vouches for the address, its attacks stay out.
@Suite(.ownThreads) struct EntraLoginTests {
    private static let tenant = "6d1f9c2e-8a51-4f3b-9d0e-2b7c5a4e1f60"
    private static let personal = "9188040d-6c67-4c5b-b112-36a304b66dad"

    private func withEntra(
        _ vouching: String, _ body: @Sendable (OnboardingFixture) async throws -> Void
    ) async throws {
        let settings = """
            issuer = replace(issuer, '/acme', '/\(Self.tenant)/v2.0'),
                jwks_url = replace(jwks_url, '/acme/jwks', '/\(Self.tenant)/discovery/v2.0/keys'),
                audience = client_id, address_vouched_by = '\(vouching)'
            """
        try await withOnboarding(settings: settings, body)
    }

    /// Logs in; the code of the problem, or `nil`, and what the device was told.
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

    /// The name that a person logs in with is the address, and the ID token the device API's: the access token is for
    /// somebody else.
    @Test func aTenantsPersonComesIn() async throws {
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
            // The names of what the token said are kept for `fieldpost environment check`, and nothing else of it.
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

    /// Somebody's account says what is not so: each is refused, and after that the real person comes in still.
    static let attacks: [(String, IdentityPerson)] = {
        let ana = IdentityPerson(email: OnboardingFixture.known)
        func changed(_ what: String, _ change: (inout IdentityPerson) -> Void) -> (String, IdentityPerson) {
            var person = ana
            change(&person)
            return (what, person)
        }
        return [
            changed("another tenant's") { $0.tenant = "7d1f9c2e-8a51-4f3b-9d0e-2b7c5a4e1f60" },
            changed("a personal account") { $0.tenant = personal },
            changed("a guest") { $0.provider = "live.com" },
            changed("a foreign domain") { $0.tokenEmail = "ana@evil.example" },
            changed("a look-alike domain") { $0.tokenEmail = "ana@examp\u{04CF}e.com" },
            changed("a name of a foreign domain") { $0.preferredUsername = "ana@example.com.evil.example" },
            changed("a name that is no address") { $0.preferredUsername = "ana" },
        ]
    }()

    @Test(arguments: 0..<attacks.count) func whoIsNotTheTenantsStaysOut(index: Int) async throws {
        let (what, person) = Self.attacks[index]
        try await withEntra("issuer") { fixture in
            let attack = try await logIn(fixture, person)
            #expect(attack.problem == "email-unverified", "\(what)")
            #expect(try fixture.count("SELECT count(*) FROM access.person WHERE subject IS NOT NULL") == 0)
            let real = try await logIn(fixture, IdentityPerson(email: OnboardingFixture.known))
            #expect(real.problem == nil)
        }
    }

    /// A whole provider of another tenant signs with good keys: its issuer is not the environment's.
    @Test func anotherTenantsProviderIsNobodyHere() async throws {
        try await withEntra("issuer") { fixture in
            for tenant in [Self.personal, "7d1f9c2e-8a51-4f3b-9d0e-2b7c5a4e1f60"] {
                let device = try await TestDevice(fixture)
                let socket = try await device.connect()
                let url = device.loginURL.replacingOccurrences(of: Self.tenant, with: tenant)
                // The code it gives is no code of the tenant's, or a token of another issuer.
                let page = try await TestBrowser(fixture: fixture).logIn(at: url)
                #expect(page.problem == "token-refused", "\(page.body)")
                #expect(try await socket.event("error").payload["code"] == "token-refused")
            }
            #expect(try fixture.count("SELECT count(*) FROM access.person WHERE subject IS NOT NULL") == 0)
            #expect(try names(fixture) == [])
        }
    }

    @Test func theDomainsOwnerMayBeAskedFor() async throws {
        try await withEntra("xms_edov") { fixture in
            var person = IdentityPerson(email: OnboardingFixture.known, tokenEmail: OnboardingFixture.known)
            #expect(try await logIn(fixture, person).problem == "email-unverified", "absent")
            // What is lacking is seen in what was told.
            let lacking = try names(fixture)
            #expect(lacking.contains("email") && !lacking.contains("xms_edov"))
            person.edov = false
            #expect(try await logIn(fixture, person).problem == "email-unverified", "false")
            person.edov = true
            #expect(try await logIn(fixture, person).problem == nil)
            #expect(try names(fixture).contains("xms_edov"))
        }
    }

    /// Its ID token is the device's again, and nobody can revoke anything there: a device is shut out all the same.
    @Test func aTenantsLoginLasts() async throws {
        try await withEntra("issuer") { fixture in
            try fixture.withDatabase { _ = try $0.run("UPDATE access.provider SET scopes = '{openid,offline_access}'") }
            var credential = try await TestDevice.comesIn(fixture).credential
            for _ in 0..<2 {
                fixture.pass(seconds: 3_700)
                let renewed = try await fixture.renew(credential)
                let claims = try #require(Self.claims(try renewed["access_token"]))
                #expect(claims["aud"] as? String == OnboardingFixture.clientID)
                #expect(claims["exp"] as? Int64 ?? 0 > fixture.clock.now)
                credential = try renewed["credential"]
            }
            // A guest since: what the login would refuse is not renewed.
            fixture.identity.add(IdentityPerson(email: OnboardingFixture.known, provider: "live.com"))
            #expect(try await fixture.renew(credential).json["reason"] == "token-refused")
            fixture.identity.add(IdentityPerson(email: OnboardingFixture.known))
            let revoked = try await fixture.command("revoke", "acme", "--all")
            #expect(revoked.status == 1 && revoked.errors.contains("--forget"), "\(revoked.errors)")
            #expect(try await fixture.renew(credential).json["reason"] == "ended")
        }
    }

    /// As environments are unless they are told otherwise.
    @Test func withoutTheSettingNobodyComesIn() async throws {
        try await withEntra("email_verified") { fixture in
            let person = IdentityPerson(
                email: OnboardingFixture.known, tokenEmail: OnboardingFixture.known, edov: true)
            #expect(try await logIn(fixture, person).problem == "email-unverified")
            let names = try names(fixture)
            #expect(names.contains("xms_edov") && !names.contains("email_verified"))
        }
    }
}
