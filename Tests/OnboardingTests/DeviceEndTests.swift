import Foundation
import HTTPClient
import Identity
import Model
import Postgres
import TestSupport
import Testing

@testable import Onboarding
@testable import Sandbox

/// How a device's renewals end, or are held up: what it is told each time.
@Suite(.ownThreads) struct DeviceEndTests {
    /// By the commands that administrators use.
    @Test func whomAnAdministratorShutsOut() async throws {
        try await withOnboarding(settings: TestDevice.keepsTokens) { fixture in
            let devices = [try await TestDevice.comesIn(fixture), try await TestDevice.comesIn(fixture)]
            let other = try await TestDevice.comesIn(fixture, "bo@example.com").credential
            // A device.
            let listed = try await fixture.command("devices", "acme", OnboardingFixture.known, "--json").rows()
            try #require(listed.count == 2 && listed.allSatisfy { $0["device"] as? String == "Test phone" })
            let number = try #require(listed[0]["number"] as? Int)
            let revoked = try await fixture.command("revoke", "acme", OnboardingFixture.known, "--device", "\(number)")
            #expect(revoked.status == 0, "\(revoked.errors)")
            #expect(try await fixture.renew(devices[0].credential).json["reason"] == "ended")
            var left = try await fixture.renew(devices[1].credential)["credential"]
            #expect(try fixture.count("SELECT count(*) FROM access.audit WHERE action = 'device.revoked'") == 1)
            // A person; the same account may come in again, its old devices may not.
            #expect(try await fixture.command("unbind", "acme", OnboardingFixture.known).status == 0)
            #expect(try await fixture.renew(left).json["reason"] == "ended")
            let again = try await TestDevice.comesIn(fixture).credential
            #expect(try await fixture.renew(left).json["reason"] == "ended")
            left = try await fixture.renew(again)["credential"]
            // Everybody, though the provider cannot be asked.
            fixture.identity.switches.failureAt = "revoke"
            fixture.identity.switches.failure = .down
            #expect(try await fixture.command("revoke", "acme", "--all").status == 1)
            fixture.identity.switches.failure = IdentitySwitches.Failure.none
            for credential in [left, other] {
                let ended = try await fixture.renew(credential)
                #expect(ended.status == 401 && ended.type == "login-needed" && ended.json["reason"] == "ended")
            }
            #expect(try await fixture.command("devices", "acme").output.contains("no device"))
        }
    }

    /// It is shut out while the provider is asked: what the provider gives then lives on neither here nor there.
    @Test func whoIsShutOutMeanwhileGetsNothing() async throws {
        try await withOnboarding(settings: TestDevice.keepsTokens) { fixture in
            let credential = try await TestDevice.comesIn(fixture).credential
            fixture.identity.switches.failureAt = "/token"
            fixture.identity.switches.failure = .held
            async let answer = fixture.renew(credential)
            try await eventually("the renewal is under way") {
                try fixture.count("SELECT count(*) FROM onboarding.refresh_token WHERE lease_until > now()") == 1
            }
            #expect(try await fixture.command("revoke", "acme", "--all", "--forget").status == 0)
            fixture.identity.switches.failure = IdentitySwitches.Failure.none
            #expect(try await answer.json["reason"] == "ended")
            #expect(fixture.identity.count(of: .refreshToken) == 0)
        }
    }

    /// The account was bound anew, or the environment has another provider: nobody sends it the old one's tokens.
    @Test func anotherAccountOrProviderEndsIt() async throws {
        try await withOnboarding(settings: TestDevice.keepsTokens) { fixture in
            for change: Statement in [
                "UPDATE access.person SET subject = 'another'",
                "UPDATE access.person SET subject = NULL, issuer = NULL",
                "UPDATE access.provider SET issuer = replace(issuer, '/acme', '/other')",
            ] {
                let credential = try await TestDevice.comesIn(fixture).credential
                try fixture.withDatabase { _ = try $0.run(change) }
                #expect(try await fixture.renew(credential).json["reason"] == "ended", "\(change)")
                #expect(fixture.identity.count(of: .refreshToken) > 0)
                try fixture.withDatabase { connection in
                    try connection.run([
                        "UPDATE access.person SET subject = NULL, issuer = NULL",
                        "UPDATE access.provider SET issuer = replace(issuer, '/other', '/acme')",
                    ])
                    return
                }
            }
        }
    }

    @Test(arguments: [IdentitySwitches.Failure.down, .serverError]) func aProviderThatIsAwaySpendsNothing(
        failure: IdentitySwitches.Failure
    ) async throws {
        try await withOnboarding(settings: TestDevice.keepsTokens) { fixture in
            let first = try await TestDevice.comesIn(fixture).credential
            let second = try await fixture.renew(first)["credential"]
            fixture.identity.switches.failureAt = "token"
            fixture.identity.switches.failure = failure
            for credential in [second, second, first] {
                let away = try await fixture.renew(credential)
                #expect(away.status == 503 && away.type == "identity-provider-unavailable" && away.retryAfter != nil)
            }
            fixture.identity.switches.failure = IdentitySwitches.Failure.none
            #expect(try await fixture.renew(second).status == 200)
        }
    }

    /// Its account is gone, or its login was withdrawn there.
    @Test func aProviderThatRefusesEndsIt() async throws {
        try await withOnboarding(settings: TestDevice.keepsTokens) { fixture in
            let credential = try await TestDevice.comesIn(fixture).credential
            fixture.identity.forget(.refreshToken)
            let refused = try await fixture.renew(credential)
            #expect(refused.status == 401 && refused.type == "login-needed")
            #expect(refused.json["reason"] == "provider-refused")
            #expect(try await fixture.renew(credential).json["reason"] == "ended")
            #expect(try fixture.count("SELECT count(*) FROM access.audit WHERE action = 'device.ended'") == 1)
            #expect(
                try fixture.count(
                    "SELECT count(*) FROM onboarding.refresh_token WHERE token = '' AND revoked_at IS NOT NULL") == 1)
        }
    }

    /// What the login would refuse is refused here, too; when that is settled, the device goes on.
    @Test func aTokenThatIsNotTakenIsNotRenewed() async throws {
        try await withOnboarding(settings: TestDevice.keepsTokens) { fixture in
            var credential = try await TestDevice.comesIn(fixture).credential
            for person in [
                IdentityPerson(email: OnboardingFixture.known, emailVerified: false),
                IdentityPerson(email: OnboardingFixture.known, subject: "somebody else"),
            ] {
                fixture.identity.add(person)
                let refused = try await fixture.renew(credential)
                #expect(refused.status == 401 && refused.json["reason"] == "token-refused")
                fixture.identity.add(IdentityPerson(email: OnboardingFixture.known))
                credential = try await fixture.renew(credential)["credential"]
            }
        }
    }

    @Test func withoutARefreshTokenThereIsNoCredential() async throws {
        try await withOnboarding { fixture in
            let device = try await TestDevice(fixture)
            let socket = try await device.connect()
            _ = try await TestBrowser(fixture: fixture).logIn(at: device.loginURL)
            #expect(try await socket.event("token").payload["credential"] == nil)
        }
    }

    @Test func whoGuessesIsHeldBack() async throws {
        var limits = OnboardingLimits.quick
        (limits.clientCountMax, limits.renewalCountMax) = (5, 3)
        try await withOnboarding(limits: limits, settings: TestDevice.keepsTokens) { fixture in
            var credential = try await TestDevice.comesIn(fixture).credential
            for text in ["x", "", Capability().text + "." + Capability().text] {
                let unknown = try await fixture.renew(text, address: "192.0.2.9")
                #expect(unknown.status == 401 && unknown.json["reason"] == "unknown")
            }
            for _ in 0..<2 { _ = try await fixture.renew("x", address: "192.0.2.9") }
            let held = try await fixture.renew("x", address: "192.0.2.9")
            #expect(held.status == 429 && held.type == "too-many-requests" && held.retryAfter == 60)
            // A device behind the same address goes on, but not without end.
            credential = try await fixture.renew(credential, address: "192.0.2.9")["credential"]
            for _ in 0..<2 { credential = try await fixture.renew(credential)["credential"] }
            #expect(try await fixture.renew(credential).status == 429)
        }
    }
}
