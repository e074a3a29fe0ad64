import Foundation
import HTTPClient
import Identity
import Model
import Postgres
import Secrets
import Tenants
import TestSupport
import Testing

@testable import Onboarding
@testable import Sandbox

/// Token renewals by devices, including lost responses, replays, concurrency and crashes.
@Suite(.ownThreads) struct DeviceRenewalTests {
    /// Each token is renewed with the credential of the previous renewal.
    @Test func deviceRenewsTenTokensWithoutLogin() async throws {
        try await withOnboarding(instances: 2, settings: TestDevice.withRefreshTokens) { fixture in
            let gateway = fixture.verifier()
            var (token, credential) = try await TestDevice.logIn(fixture)
            var seen = Set([credential])
            for index in 0..<10 {
                #expect(try await gateway.identity(of: token).email == OnboardingFixture.known)
                fixture.advance(seconds: 3_600 + 61)
                await #expect(throws: TokenError.expired) { try await gateway.identity(of: token) }
                let renewed = try await fixture.renew(credential, instance: index % 2)
                #expect(renewed.status == 200, "\(renewed.json)")
                #expect(renewed.json["token_type"] == "Bearer" && renewed.json["expires_at"] != nil)
                (token, credential) = (try renewed["access_token"], try renewed["credential"])
                #expect(seen.insert(credential).inserted)
            }
            #expect(try await gateway.identity(of: token).email == OnboardingFixture.known)
            #expect(try fixture.count("SELECT count(*) FROM onboarding.refresh_token") == 1)
            // The database does not contain the credential.
            let dump = try fixture.withDatabase { connection in
                try connection.run("SELECT string_agg(t::text, '') FROM onboarding.refresh_token t")[0].value(
                    0, as: String.self)
            }
            for part in credential.split(separator: ".") { #expect(part.count == 43 && !dump.contains(part)) }
        }
    }

    @Test func renewalAfterLostResponseSucceeds() async throws {
        try await withOnboarding(instances: 2, settings: TestDevice.withRefreshTokens) { fixture in
            let first = try await TestDevice.logIn(fixture).credential
            let lost = try await fixture.renew(first)["credential"]
            // Even after repeated losses.
            var next = lost
            for index in 0..<3 { next = try await fixture.renew(first, instance: index % 2)["credential"] }
            #expect(next != lost)
            let third = try await fixture.renew(next)["credential"]
            #expect(try await fixture.renew(third).status == 200)
            #expect(try fixture.count(Self.audited("device.reused")) == 0)
        }
    }

    /// A spent credential is replayed: by the owner of a copy, or by the copied device.
    @Test(arguments: [0, 1]) func replayRevokesDevice(spent: Int) async throws {
        try await withOnboarding(instances: 2, settings: TestDevice.withRefreshTokens) { fixture in
            let first = try await TestDevice.logIn(fixture).credential
            // The response was lost, and another credential was issued.
            let replaced = try await fixture.renew(first)["credential"]
            let second = try await fixture.renew(first)["credential"]
            let third = try await fixture.renew(second)["credential"]
            let refused = try await fixture.renew([first, replaced][spent], instance: 1)
            #expect(refused.status == 401 && refused.type == "login-required" && refused.json["reason"] == "reused")
            for credential in [third, second, first, third] {
                let ended = try await fixture.renew(credential)
                #expect(ended.status == 401 && ended.json["reason"] == "ended", "\(ended.json)")
            }
            #expect(try fixture.count(Self.audited("device.reused")) == 1)
            // The person's other devices are not affected.
            #expect(try await fixture.renew(try await TestDevice.logIn(fixture).credential).status == 200)
        }
    }

    /// An attacker who has the device id, or shares the network address, guesses secrets.
    @Test func guessedSecretsDoNotLockADeviceOut() async throws {
        var limits = OnboardingLimits.quick
        (limits.clientCountMax, limits.renewalCountMax) = (5, 4)
        try await withOnboarding(limits: limits, settings: TestDevice.withRefreshTokens) { fixture in
            var credential = try await TestDevice.logIn(fixture).credential
            let other = try await TestDevice.logIn(fixture).credential
            let name = credential.prefix(44)
            for attempt in 0..<12 {
                // Random secrets, and one that was issued to another device.
                let guess = name + (attempt == 0 ? other.suffix(43) : Capability().text[...])
                let response = try await fixture.renew(String(guess), address: "192.0.2.9")
                #expect(response.status == (attempt < 5 ? 401 : 429), "\(attempt): \(response.json)")
                if attempt < 5 { #expect(response.json["reason"] == "unknown") }
            }
            for address in ["192.0.2.9", "192.0.2.1"] {
                let response = try await fixture.renew(credential, address: address)
                #expect(response.status == 200, "\(response.json)")
                credential = try response["credential"]
            }
            #expect(try fixture.count(Self.audited("device.reused")) == 0)
        }
    }

    @Test func secretIssuerRecognisesOnlyItsSecrets() throws {
        func box(_ bytes: UInt8...) throws -> SecretBox {
            try SecretBox(bytes.map { Data(repeating: $0, count: 32).base64EncodedString() })
        }
        let (issuer, device) = (SecretIssuer(try box(1)), Capability())
        let secret = issuer.secret(for: device)
        #expect(issuer.hasIssued(secret, for: device))
        #expect(SecretIssuer(try box(2, 1)).hasIssued(secret, for: device))
        #expect(!SecretIssuer(try box(2)).hasIssued(secret, for: device))
        #expect(!issuer.hasIssued(secret, for: Capability()))
        for _ in 0..<1_000 { #expect(!issuer.hasIssued(Capability(), for: device)) }
    }

    /// Two instances get concurrent requests: only one calls the provider, which accepts each refresh token once.
    @Test func concurrentRenewalIsRejectedWhileLeaseHeld() async throws {
        try await withOnboarding(instances: 2, settings: TestDevice.withRefreshTokens) { fixture in
            let credential = try await TestDevice.logIn(fixture).credential
            fixture.identity.switches.failureAt = "token"
            fixture.identity.switches.failure = .held
            async let first = fixture.renew(credential)
            try await eventually("the renewal is in progress") {
                try fixture.count("SELECT count(*) FROM onboarding.refresh_token WHERE lease_until > now()") == 1
            }
            let second = try await fixture.renew(credential, instance: 1)
            #expect(second.status == 503 && second.type == "renewal-in-progress" && second.retryAfter != nil)
            fixture.identity.switches.failure = IdentitySwitches.Failure.none
            let next = try await first["credential"]
            #expect(try await fixture.renew(next, instance: 1).status == 200)
        }
    }

    @Test func concurrentRenewalsKeepDevicesUsable() async throws {
        try await withOnboarding(instances: 2, settings: TestDevice.withRefreshTokens) { fixture in
            let devices = [try await TestDevice.logIn(fixture), try await TestDevice.logIn(fixture)]
            var current = devices.map(\.credential)
            for _ in 0..<4 {
                let tried = current
                let responses = try await withThrowingTaskGroup(of: (Int, OnboardingFixture.RenewalResponse).self) {
                    group in
                    for index in 0..<6 {
                        group.addTask {
                            (index % 2, try await fixture.renew(tried[index % 2], instance: index / 2 % 2))
                        }
                    }
                    return try await group.reduce(into: []) { $0.append($1) }
                }
                #expect(responses.allSatisfy { [200, 503].contains($0.1.status) }, "\(responses)")
                // The order of concurrent responses is unknown to the device, so it renews again.
                for device in 0..<2 { current[device] = try await fixture.renew(tried[device])["credential"] }
            }
            #expect(try fixture.count("SELECT count(*) FROM onboarding.refresh_token WHERE newest IS NOT NULL") == 2)
        }
    }

    enum Crash: CaseIterable {
        /// Before the call to the provider; after storing its refresh token; after storing the credential.
        case leased, refreshTokenStored, completed
    }

    @Test(arguments: Crash.allCases) func renewalResumesAfterCrashAtAnyStep(crash: Crash) async throws {
        try await withOnboarding(instances: 2, settings: TestDevice.withRefreshTokens) { fixture in
            let credential = try await TestDevice.logIn(fixture).credential
            let presented = try #require(DeviceCredential(credential))
            let provider = OpenIDProvider(client: fixture.client)
            let store = DeviceStore(secrets: fixture.secrets, leaseMax: .seconds(60))
            let metadata = try await provider.discover(fixture.issuer)
            let beginning = try fixture.withDatabase { try store.begin(presented, from: "", on: &$0) }
            guard case .renewal(let renewal) = beginning else { throw CancellationError() }
            if crash != .leased {
                let tokens = try await provider.refresh(
                    renewal.refreshToken, as: renewal.organisation.client, at: metadata)
                let refreshToken = try #require(tokens.refreshToken)
                #expect(try fixture.withDatabase { try store.store(refreshToken, of: renewal, on: &$0) } == .done)
            }
            if crash == .completed {
                let next = presented.successor(by: store.issuer)
                #expect(
                    try fixture.withDatabase { connection in
                        let isDone = try store.complete(renewal, used: presented, next: next, on: &connection)
                        // The database's response may have been lost.
                        let isDoneAgain = try store.complete(renewal, used: presented, next: next, on: &connection)
                        return isDone == .done && isDoneAgain == .done
                    })
            } else {
                // The lease is still held.
                #expect(try await fixture.renew(credential).type == "renewal-in-progress")
                try fixture.withDatabase { _ = try $0.run("UPDATE onboarding.refresh_token SET lease_until = now()") }
            }
            let next = try await fixture.renew(credential, instance: 1)["credential"]
            // The interrupted renewal resumes late, without effect.
            try fixture.withDatabase { connection in
                let isStored = try store.store("stale", of: renewal, on: &connection)
                let late = presented.successor(by: store.issuer)
                let isDone = try store.complete(renewal, used: presented, next: late, on: &connection)
                #expect(isStored == .superseded && isDone == .superseded)
            }
            #expect(try await fixture.renew(next).status == 200)
            try fixture.withDatabase { connection in
                _ = try connection.run("UPDATE onboarding.refresh_token SET newest = NULL, former = NULL")
                #expect(try store.store("stale", of: renewal, on: &connection) == .revoked)
            }
        }
    }

    private static func audited(_ action: String) -> Statement {
        "SELECT count(*) FROM access.audit WHERE action = \(action)"
    }

    // MARK: DeviceRule

    @Test func decisionDependsOnStoredSecrets() {
        let (newest, former, other) = (Bytea([1]), Bytea([2]), Bytea([3]))
        let stored = DeviceRule.StoredDevice(newest: newest, former: former)
        #expect(DeviceRule.decide(stored, secret: newest) == .renew)
        #expect(DeviceRule.decide(stored, secret: former) == .renew)
        #expect(DeviceRule.decide(stored, secret: other) == .reused)
        var busy = stored
        busy.busySeconds = 0.2
        #expect(DeviceRule.decide(busy, secret: newest) == .busy(seconds: 1))
        #expect(DeviceRule.decide(busy, secret: other) == .reused)
        var unbound = stored
        unbound.isBound = false
        #expect(DeviceRule.decide(unbound, secret: newest) == .ended)
        #expect(DeviceRule.decide(DeviceRule.StoredDevice(newest: nil, former: nil), secret: other) == .ended)
        #expect(DeviceRule.decide(DeviceRule.StoredDevice(newest: newest, former: nil), secret: former) == .reused)
    }

    @Test func malformedCredentialsAreRejected() throws {
        let issuer = SecretIssuer(try SecretBox([Data(repeating: 1, count: 32).base64EncodedString()]))
        let credential = DeviceCredential(by: issuer)
        let successor = credential.successor(by: issuer)
        #expect(credential.text.utf8.count == 87)
        #expect(DeviceCredential(credential.text)?.text == credential.text)
        #expect(successor.device.text == credential.device.text)
        #expect(successor.secret.text != credential.secret.text)
        let (device, secret) = (credential.device.text, credential.secret.text)
        let forms = ["", ".", device, device + ".", device + secret, "\(device).\(secret).x", "\(device).\(secret)="]
        for text in forms {
            #expect(DeviceCredential(text) == nil, "\(text)")
        }
    }
}
