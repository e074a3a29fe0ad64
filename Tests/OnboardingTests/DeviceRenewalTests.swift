import Tenants
import Foundation
import HTTPClient
import Identity
import Model
import Postgres
import Secrets
import TestSupport
import Testing

@testable import Onboarding
@testable import Sandbox

/// A device that renews its token by itself: what it is answered, whatever happens on the way.
@Suite(.ownThreads) struct DeviceRenewalTests {
    /// It lives on while its tokens end, each renewed with the credential of the one before.
    @Test func aDeviceLivesThroughTenTokensWithoutItsPerson() async throws {
        try await withOnboarding(instances: 2, settings: TestDevice.keepsTokens) { fixture in
            let gateway = fixture.verifier()
            var (token, credential) = try await TestDevice.comesIn(fixture)
            var seen = Set([credential])
            for turn in 0..<10 {
                #expect(try await gateway.identity(of: token).email == OnboardingFixture.known)
                fixture.pass(seconds: 3_600 + 61)
                await #expect(throws: TokenError.expired) { try await gateway.identity(of: token) }
                let renewed = try await fixture.renew(credential, instance: turn % 2)
                #expect(renewed.status == 200, "\(renewed.json)")
                #expect(renewed.json["token_type"] == "Bearer" && renewed.json["expires_at"] != nil)
                (token, credential) = (try renewed["access_token"], try renewed["credential"])
                #expect(seen.insert(credential).inserted)
            }
            #expect(try await gateway.identity(of: token).email == OnboardingFixture.known)
            #expect(try fixture.count("SELECT count(*) FROM onboarding.refresh_token") == 1)
            // Nobody who reads the database has what a device renews its token with.
            let dump = try fixture.withDatabase { connection in
                try connection.run("SELECT string_agg(t::text, '') FROM onboarding.refresh_token t")[0].value(
                    0, as: String.self)
            }
            for part in credential.split(separator: ".") { #expect(part.count == 43 && !dump.contains(part)) }
        }
    }

    @Test func aLostAnswerIsAskedForAgain() async throws {
        try await withOnboarding(instances: 2, settings: TestDevice.keepsTokens) { fixture in
            let first = try await TestDevice.comesIn(fixture).credential
            let lost = try await fixture.renew(first)["credential"]
            // However often it is lost.
            var next = lost
            for turn in 0..<3 { next = try await fixture.renew(first, instance: turn % 2)["credential"] }
            #expect(next != lost)
            let third = try await fixture.renew(next)["credential"]
            #expect(try await fixture.renew(third).status == 200)
            #expect(try fixture.count(Self.audited("device.reused")) == 0)
        }
    }

    /// What was spent comes again: from whoever has a copy, or from the device that the copy was made of.
    @Test(arguments: [0, 1]) func aReplayShutsBothOut(spent: Int) async throws {
        try await withOnboarding(instances: 2, settings: TestDevice.keepsTokens) { fixture in
            let first = try await TestDevice.comesIn(fixture).credential
            // Its answer was lost, and another one took its place.
            let replaced = try await fixture.renew(first)["credential"]
            let second = try await fixture.renew(first)["credential"]
            let third = try await fixture.renew(second)["credential"]
            let refused = try await fixture.renew([first, replaced][spent], instance: 1)
            #expect(refused.status == 401 && refused.type == "login-needed" && refused.json["reason"] == "reused")
            for credential in [third, second, first, third] {
                let ended = try await fixture.renew(credential)
                #expect(ended.status == 401 && ended.json["reason"] == "ended", "\(ended.json)")
            }
            #expect(try fixture.count(Self.audited("device.reused")) == 1)
            // Another device of the person is another one.
            #expect(try await fixture.renew(try await TestDevice.comesIn(fixture).credential).status == 200)
        }
    }

    /// A stranger who knows the name of a device, or shares its network address, guesses secrets.
    @Test func guessedSecretsDoNotLockADeviceOut() async throws {
        var limits = OnboardingLimits.quick
        (limits.clientCountMax, limits.renewalCountMax) = (5, 4)
        try await withOnboarding(limits: limits, settings: TestDevice.keepsTokens) { fixture in
            var credential = try await TestDevice.comesIn(fixture).credential
            let other = try await TestDevice.comesIn(fixture).credential
            let name = credential.prefix(44)
            for attempt in 0..<12 {
                // Random ones, and one that another device was given.
                let guess = name + (attempt == 0 ? other.suffix(43) : Capability().text[...])
                let answer = try await fixture.renew(String(guess), address: "192.0.2.9")
                #expect(answer.status == (attempt < 5 ? 401 : 429), "\(attempt): \(answer.json)")
                if attempt < 5 { #expect(answer.json["reason"] == "unknown") }
            }
            for address in ["192.0.2.9", "192.0.2.1"] {
                let answer = try await fixture.renew(credential, address: address)
                #expect(answer.status == 200, "\(answer.json)")
                credential = try answer["credential"]
            }
            #expect(try fixture.count(Self.audited("device.reused")) == 0)
        }
    }

    @Test func secretIssuerRecognisesItsSecretsAlone() throws {
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

    /// Two instances are asked at once: one of them calls the provider, with a refresh token that it takes once.
    @Test func oneRenewalAtATimeUsesTheRefreshToken() async throws {
        try await withOnboarding(instances: 2, settings: TestDevice.keepsTokens) { fixture in
            let credential = try await TestDevice.comesIn(fixture).credential
            fixture.identity.switches.failureAt = "token"
            fixture.identity.switches.failure = .held
            async let first = fixture.renew(credential)
            try await eventually("the renewal is under way") {
                try fixture.count("SELECT count(*) FROM onboarding.refresh_token WHERE lease_until > now()") == 1
            }
            let second = try await fixture.renew(credential, instance: 1)
            #expect(second.status == 503 && second.type == "renewal-under-way" && second.retryAfter != nil)
            fixture.identity.switches.failure = IdentitySwitches.Failure.none
            let next = try await first["credential"]
            #expect(try await fixture.renew(next, instance: 1).status == 200)
        }
    }

    @Test func manyAtOnceSpendNothingTwice() async throws {
        try await withOnboarding(instances: 2, settings: TestDevice.keepsTokens) { fixture in
            let devices = [try await TestDevice.comesIn(fixture), try await TestDevice.comesIn(fixture)]
            var current = devices.map(\.credential)
            for _ in 0..<4 {
                let tried = current
                let answers = try await withThrowingTaskGroup(of: (Int, OnboardingFixture.Renewed).self) { group in
                    for turn in 0..<6 {
                        group.addTask { (turn % 2, try await fixture.renew(tried[turn % 2], instance: turn / 2 % 2)) }
                    }
                    return try await group.reduce(into: []) { $0.append($1) }
                }
                #expect(answers.allSatisfy { [200, 503].contains($0.1.status) }, "\(answers)")
                // Which of several answers is the newest nobody can tell from outside: the device asks once more.
                for device in 0..<2 { current[device] = try await fixture.renew(tried[device])["credential"] }
            }
            #expect(try fixture.count("SELECT count(*) FROM onboarding.refresh_token WHERE newest IS NOT NULL") == 2)
        }
    }

    enum Crash: CaseIterable {
        /// Before the provider was called; after its refresh token was stored; after the credential was.
        case leased, kept, completed
    }

    @Test(arguments: Crash.allCases) func aCrashBetweenAnyTwoStepsCostsNothing(crash: Crash) async throws {
        try await withOnboarding(instances: 2, settings: TestDevice.keepsTokens) { fixture in
            let credential = try await TestDevice.comesIn(fixture).credential
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
                #expect(try fixture.withDatabase { try store.keep(refreshToken, of: renewal, on: &$0) } == .done)
            }
            if crash == .completed {
                let next = presented.successor(by: store.issuer)
                #expect(
                    try fixture.withDatabase { connection in
                        let isDone = try store.complete(renewal, used: presented, next: next, on: &connection)
                        // The database's answer may have been lost, too.
                        let isDoneAgain = try store.complete(renewal, used: presented, next: next, on: &connection)
                        return isDone == .done && isDoneAgain == .done
                    })
            } else {
                // While it may be under way still.
                #expect(try await fixture.renew(credential).type == "renewal-under-way")
                try fixture.withDatabase { _ = try $0.run("UPDATE onboarding.refresh_token SET lease_until = now()") }
            }
            let next = try await fixture.renew(credential, instance: 1)["credential"]
            // What was under way, and wakes up, changes nothing any more.
            try fixture.withDatabase { connection in
                let isKept = try store.keep("stale", of: renewal, on: &connection)
                let late = presented.successor(by: store.issuer)
                let isDone = try store.complete(renewal, used: presented, next: late, on: &connection)
                #expect(isKept == .overtaken && isDone == .overtaken)
            }
            #expect(try await fixture.renew(next).status == 200)
            try fixture.withDatabase { connection in
                _ = try connection.run("UPDATE onboarding.refresh_token SET newest = NULL, former = NULL")
                #expect(try store.keep("stale", of: renewal, on: &connection) == .shutOut)
            }
        }
    }

    private static func audited(_ action: String) -> Statement {
        "SELECT count(*) FROM access.audit WHERE action = \(action)"
    }

    // MARK: The rule

    @Test func aCredentialIsWorthWhatIsStored() {
        let (newest, former, other) = (Bytea([1]), Bytea([2]), Bytea([3]))
        let stored = DeviceRule.Stored(newest: newest, former: former)
        #expect(DeviceRule.judge(stored, secret: newest) == .renew)
        #expect(DeviceRule.judge(stored, secret: former) == .renew)
        #expect(DeviceRule.judge(stored, secret: other) == .reused)
        var busy = stored
        busy.busySeconds = 0.2
        #expect(DeviceRule.judge(busy, secret: newest) == .busy(seconds: 1))
        #expect(DeviceRule.judge(busy, secret: other) == .reused)
        var unbound = stored
        unbound.isPersons = false
        #expect(DeviceRule.judge(unbound, secret: newest) == .ended)
        #expect(DeviceRule.judge(DeviceRule.Stored(newest: nil, former: nil), secret: other) == .ended)
        #expect(DeviceRule.judge(DeviceRule.Stored(newest: newest, former: nil), secret: former) == .reused)
    }

    @Test func aCredentialHasOneForm() throws {
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
