import Foundation
import HTTPClient
import Identity
import Model
import Postgres
import TestSupport
import Testing

@testable import Onboarding
@testable import Sandbox

/// Renewals of revoked devices and with an unavailable provider, and their problem responses.
@Suite(.ownThreads) struct DeviceEndTests {
    /// With the administrators' commands.
    @Test func revokedDevicesRequireLogin() async throws {
        try await withOnboarding(settings: TestDevice.withRefreshTokens) { fixture in
            let devices = [try await TestDevice.logIn(fixture), try await TestDevice.logIn(fixture)]
            let other = try await TestDevice.logIn(fixture, "bo@example.com").credential
            // Revoke one device.
            let listed = try await fixture.command("devices", "acme", OnboardingFixture.known, "--json").rows()
            try #require(listed.count == 2 && listed.allSatisfy { $0["device"] as? String == "Test phone" })
            let number = try #require(listed[0]["number"] as? Int)
            let revoked = try await fixture.command("revoke", "acme", OnboardingFixture.known, "--device", "\(number)")
            #expect(revoked.status == 0, "\(revoked.errors)")
            #expect(try await fixture.renew(devices[0].credential).json["reason"] == "ended")
            var left = try await fixture.renew(devices[1].credential)["credential"]
            #expect(try fixture.count("SELECT count(*) FROM access.audit WHERE action = 'device.revoked'") == 1)
            // Unbind a person: the same account may log in again, its old devices cannot renew.
            #expect(try await fixture.command("unbind", "acme", OnboardingFixture.known).status == 0)
            #expect(try await fixture.renew(left).json["reason"] == "ended")
            let again = try await TestDevice.logIn(fixture).credential
            #expect(try await fixture.renew(left).json["reason"] == "ended")
            left = try await fixture.renew(again)["credential"]
            // Revoke all, although the provider is unavailable.
            fixture.identity.switches.failureAt = "revoke"
            fixture.identity.switches.failure = .down
            #expect(try await fixture.command("revoke", "acme", "--all").status == 1)
            fixture.identity.switches.failure = IdentitySwitches.Failure.none
            for credential in [left, other] {
                let ended = try await fixture.renew(credential)
                #expect(ended.status == 401 && ended.type == "login-required" && ended.json["reason"] == "ended")
            }
            #expect(try await fixture.command("devices", "acme").output.contains("no device"))
        }
    }

    /// With any credential that the device ever had, and although the provider is unavailable.
    @Test func logoutEndsDevice() async throws {
        try await withOnboarding(settings: TestDevice.withRefreshTokens) { fixture in
            let first = try await TestDevice.logIn(fixture).credential
            let renewed = try await fixture.renew(first)
            #expect(try renewed["device_id"].utf8.count == 64)
            let next = try renewed["credential"]
            let other = try await TestDevice.logIn(fixture).credential
            #expect(fixture.identity.count(of: .refreshToken) == 2)
            #expect(try await fixture.logOut(String(next.reversed())) == 204, "a guess ends nothing")
            #expect(try await fixture.logOut(next) == 204)
            #expect(try await fixture.renew(next).json["reason"] == "ended")
            #expect(fixture.identity.count(of: .refreshToken) == 1, "the provider accepts it no longer")
            #expect(try await fixture.logOut(next) == 204)
            fixture.identity.switches.failureAt = "revoke"
            fixture.identity.switches.failure = .down
            #expect(try await fixture.logOut(other) == 204)
            fixture.identity.switches.failure = IdentitySwitches.Failure.none
            #expect(try await fixture.renew(other).json["reason"] == "ended")
            #expect(try fixture.count("SELECT count(*) FROM onboarding.refresh_token WHERE token <> ''") == 0)
            #expect(try fixture.count("SELECT count(*) FROM access.audit WHERE action = 'login.ended'") == 2)
        }
    }

    /// The device is revoked during the call to the provider: the new refresh token is revoked too and not stored.
    @Test func revocationDuringRenewalEndsDevice() async throws {
        try await withOnboarding(settings: TestDevice.withRefreshTokens) { fixture in
            let credential = try await TestDevice.logIn(fixture).credential
            fixture.identity.switches.failureAt = "/token"
            fixture.identity.switches.failure = .held
            async let response = fixture.renew(credential)
            try await eventually("the renewal is in progress") {
                try fixture.count("SELECT count(*) FROM onboarding.refresh_token WHERE lease_until > now()") == 1
            }
            #expect(try await fixture.command("revoke", "acme", "--all", "--local-only").status == 0)
            fixture.identity.switches.failure = IdentitySwitches.Failure.none
            #expect(try await response.json["reason"] == "ended")
            #expect(fixture.identity.count(of: .refreshToken) == 0)
        }
    }

    /// After the account or provider changes, the old refresh token is not sent to the new provider.
    @Test func accountOrProviderChangeEndsDevice() async throws {
        try await withOnboarding(settings: TestDevice.withRefreshTokens) { fixture in
            for change: Statement in [
                "UPDATE access.person SET subject = 'another'",
                "UPDATE access.person SET subject = NULL, issuer = NULL",
                "UPDATE access.provider SET issuer = replace(issuer, '/acme', '/other')",
            ] {
                let credential = try await TestDevice.logIn(fixture).credential
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

    @Test(arguments: [IdentitySwitches.Failure.down, .serverError]) func unavailableProviderSpendsNoCredential(
        failure: IdentitySwitches.Failure
    ) async throws {
        try await withOnboarding(settings: TestDevice.withRefreshTokens) { fixture in
            let first = try await TestDevice.logIn(fixture).credential
            let second = try await fixture.renew(first)["credential"]
            fixture.identity.switches.failureAt = "token"
            fixture.identity.switches.failure = failure
            for credential in [second, second, first] {
                let response = try await fixture.renew(credential)
                #expect(
                    response.status == 503 && response.type == "identity-provider-unavailable"
                        && response.retryAfter != nil)
            }
            fixture.identity.switches.failure = IdentitySwitches.Failure.none
            #expect(try await fixture.renew(second).status == 200)
        }
    }

    /// The account was deleted or its login revoked at the provider.
    @Test func rejectedRefreshTokenEndsDevice() async throws {
        try await withOnboarding(settings: TestDevice.withRefreshTokens) { fixture in
            let credential = try await TestDevice.logIn(fixture).credential
            fixture.identity.removeAll(.refreshToken)
            let refused = try await fixture.renew(credential)
            #expect(refused.status == 401 && refused.type == "login-required")
            #expect(refused.json["reason"] == "provider-refused")
            #expect(try await fixture.renew(credential).json["reason"] == "ended")
            #expect(try fixture.count("SELECT count(*) FROM access.audit WHERE action = 'device.ended'") == 1)
            #expect(
                try fixture.count(
                    "SELECT count(*) FROM onboarding.refresh_token WHERE token = '' AND revoked_at IS NOT NULL") == 1)
        }
    }

    /// Tokens that a login rejects are not renewed; after correction, the device continues.
    @Test func unacceptableTokenIsNotRenewed() async throws {
        try await withOnboarding(settings: TestDevice.withRefreshTokens) { fixture in
            var credential = try await TestDevice.logIn(fixture).credential
            for person in [
                IdentityPerson(email: OnboardingFixture.known, emailVerified: false),
                IdentityPerson(email: OnboardingFixture.known, subject: "another-account"),
            ] {
                fixture.identity.add(person)
                let refused = try await fixture.renew(credential)
                #expect(refused.status == 401 && refused.json["reason"] == "token-refused")
                fixture.identity.add(IdentityPerson(email: OnboardingFixture.known))
                credential = try await fixture.renew(credential)["credential"]
            }
        }
    }

    @Test func loginWithoutRefreshTokenHasNoCredential() async throws {
        try await withOnboarding { fixture in
            let device = try await TestDevice(fixture)
            let socket = try await device.connect()
            _ = try await TestBrowser(fixture: fixture).logIn(at: device.loginURL)
            #expect(try await socket.event("token").payload["credential"] == nil)
        }
    }

    @Test func credentialGuessesAreRateLimited() async throws {
        var limits = OnboardingLimits.quick
        (limits.clientCountMax, limits.renewalCountMax) = (5, 3)
        try await withOnboarding(limits: limits, settings: TestDevice.withRefreshTokens) { fixture in
            var credential = try await TestDevice.logIn(fixture).credential
            for text in ["x", "", Capability().text + "." + Capability().text] {
                let unknown = try await fixture.renew(text, address: "192.0.2.9")
                #expect(unknown.status == 401 && unknown.json["reason"] == "unknown")
            }
            for _ in 0..<2 { _ = try await fixture.renew("x", address: "192.0.2.9") }
            let limited = try await fixture.renew("x", address: "192.0.2.9")
            #expect(limited.status == 429 && limited.type == "too-many-requests" && limited.retryAfter == 60)
            // A device at the same address can renew, up to its own limit.
            credential = try await fixture.renew(credential, address: "192.0.2.9")["credential"]
            for _ in 0..<2 { credential = try await fixture.renew(credential)["credential"] }
            #expect(try await fixture.renew(credential).status == 429)
        }
    }
}
