import Essentials
import Foundation
import HTTPClient
import Model
import Postgres
import TestSupport
import Testing

@testable import Onboarding
@testable import Sandbox
@testable import ServiceRuntime

/// Failed logins: the page in the browser, the event for the device, and the retry.
@Suite(.ownThreads) struct OnboardingFailureTests {
    /// A failing login.
    struct Failure: Sendable, CustomTestStringConvertible {
        let code: String
        let status: Int
        var decision = "allow"
        var address = OnboardingFixture.known
        var person: IdentityPerson?
        var switches = IdentitySwitches()
        var mayRetry = true
        var testDescription: String { "\(code) \(address) \(person?.tokenEmail ?? "")" }
    }

    static let failures = [
        Failure(code: "consent-refused", status: 403, decision: "refuse"),
        Failure(code: "other-address", status: 403, address: "bo@example.com"),
        Failure(
            code: "other-address", status: 403,
            person: IdentityPerson(email: OnboardingFixture.known, tokenEmail: "ana+x@example.com")),
        Failure(
            code: "other-address", status: 403,
            person: IdentityPerson(email: OnboardingFixture.known, tokenEmail: "\u{0430}na@example.com")),
        Failure(
            code: "email-unverified", status: 403,
            person: IdentityPerson(email: OnboardingFixture.known, emailVerified: false)),
        Failure(
            code: "provider-unavailable", status: 503, switches: IdentitySwitches(failure: .down, failureAt: "token")),
        Failure(
            code: "provider-unavailable", status: 503, switches: IdentitySwitches(failure: .down, failureAt: "jwks")),
        Failure(
            code: "provider-unavailable", status: 503,
            switches: IdentitySwitches(failure: .serverError, failureAt: "token")),
        Failure(code: "token-refused", status: 502, switches: IdentitySwitches(clockSkewSeconds: 600)),
        Failure(code: "token-refused", status: 502, switches: IdentitySwitches(clockSkewSeconds: -86_400)),
    ]

    @Test(arguments: failures) func failedLoginIsReportedAndCanBeRetried(failure: Failure) async throws {
        try await withOnboarding { fixture in
            let device = try await TestDevice(fixture)
            let socket = try await device.connect()
            if let person = failure.person { fixture.identity.add(person) }
            fixture.identity.switches = failure.switches
            let browser = TestBrowser(fixture: fixture)
            let page = try await browser.logIn(at: device.loginURL, as: failure.address, decision: failure.decision)
            #expect(page.problem == failure.code && page.status == failure.status, "\(page.status) \(page.body)")
            let event = try await socket.event("error")
            #expect(event.payload["code"] == failure.code)
            #expect(event.payload["message"]?.isEmpty == false)
            let retry = try #require(event.payload["login_url"])
            #expect(page.retry == retry && retry != device.loginURL)

            fixture.identity.switches = IdentitySwitches()
            fixture.identity.add(IdentityPerson(email: OnboardingFixture.known))
            let second = try await browser.logIn(at: retry)
            #expect(second.status == 200, "\(second.body)")
            try await socket.event("token")
        }
    }

    @Test func wrongPasswordIsHandledByProvider() async throws {
        try await withOnboarding { fixture in
            let device = try await TestDevice(fixture)
            var browser = TestBrowser(fixture: fixture)
            browser.password = "wrong"
            let page = try await browser.logIn(at: device.loginURL)
            #expect(page.status == 401 && page.body.contains("password is wrong"))
            let consent = try await browser.submit(page, ["email": OnboardingFixture.known, "password": "right"])
            #expect(try await browser.submit(consent, ["decision": "allow"]).status == 200)
        }
    }

    @Test func loginAttemptsPerSessionAreLimited() async throws {
        try await withOnboarding { fixture in
            let device = try await TestDevice(fixture)
            let browser = TestBrowser(fixture: fixture)
            var url: String? = device.loginURL
            var count = 0
            while let next = url {
                url = try await browser.logIn(at: next, decision: "refuse").retry
                count += 1
            }
            #expect(count == OnboardingLimits().loginCountMax)
        }
    }

    @Test func responseWithUnknownStateIsRejected() async throws {
        try await withOnboarding { fixture in
            let device = try await TestDevice(fixture)
            let socket = try await device.connect()
            let browser = TestBrowser(fixture: fixture)
            let back = try await browser.logIn(at: device.loginURL, stopsBeforeCallback: true)
            let code = try #require(FormFields(URL(string: back.url)?.query ?? "")?["code"])
            for query in [
                "code=\(code)", "code=\(code)&state=", "code=\(code)&state=\(Capability().text)",
                "code=\(code)&state=\(Capability().text)&state=\(Capability().text)", "error=access_denied", "",
            ] {
                let page = try await browser.open(fixture.url("/auth_callback?\(query)"))
                #expect(page.status == 400 && page.title == "Invalid login link", "\(query): \(page.body)")
            }
            // The valid response still works: nothing was consumed.
            #expect(try await browser.open(back.url).status == 200)
            try await socket.event("token")
            #expect(await socket.events.filter { $0.name == "error" }.isEmpty)
        }
    }

    @Test func responseIsUsedOnce() async throws {
        try await withOnboarding(instances: 2) { fixture in
            let device = try await TestDevice(fixture)
            let browser = TestBrowser(fixture: fixture)
            let back = try await browser.logIn(at: device.loginURL, stopsBeforeCallback: true)
            var other = browser
            other.instance = 1
            // Concurrently on both instances: only one succeeds.
            async let one = browser.open(back.url)
            async let two = other.open(back.url)
            let pages = try await [one, two]
            #expect(pages.map(\.status).sorted() == [200, 400])
            #expect(try await browser.open(back.url).status == 400)
            #expect(try fixture.count("SELECT count(*) FROM onboarding.event WHERE name = 'token'") == 1)
        }
    }

    @Test func sessionExpires() async throws {
        var limits = OnboardingLimits.quick
        limits.sessionMax = .seconds(600)
        try await withOnboarding(limits: limits) { fixture in
            let device = try await TestDevice(fixture)
            let lastingCount = try fixture.count(
                "SELECT count(*) FROM onboarding.session WHERE expires_at - now() BETWEEN '300 s' AND '600 s'")
            #expect(lastingCount == 1)
            let browser = TestBrowser(fixture: fixture)
            let back = try await browser.logIn(at: device.loginURL, stopsBeforeCallback: true)
            // The session is about to expire when the device connects.
            var socket: TestSocket
            repeat {
                try fixture.withDatabase { connection in
                    _ = try connection.run("UPDATE onboarding.session SET expires_at = now() + interval '3 s'")
                }
                socket = try await device.connect()
            } while await socket.status == 404
            #expect(try await socket.ended() == 4001)
            #expect(try await browser.open(back.url).status == 400)
            let late = try await device.connect()
            #expect(await late.status == 404)
        }
    }

    /// Without any request, which would wake the loops: a load balancer sends none to an instance that is not ready.
    @Test func instanceIsReadyAfterAnOutageOfTheDatabase() async throws {
        let sources: Set = ["realm-registration", "realm-notifications", "events"]
        try await withOnboarding { fixture in
            try await fixture.withoutDatabase {
                try await eventually("it is not ready") { sources.isSubset(of: fixture.health.reasons.keys) }
            }
            try await eventually("it is ready") { fixture.health.reasons.isEmpty }
        }
    }

    @Test func registrationReportsUnavailableProvider() async throws {
        try await withOnboarding { fixture in
            fixture.identity.switches = IdentitySwitches(failure: .down)
            let response = try await TestDevice.register(fixture, OnboardingFixture.known)
            #expect(response.status == 503)
            #expect(String(decoding: response.body, as: UTF8.self).contains("identity-provider-unavailable"))
            fixture.identity.switches = IdentitySwitches()
            try await eventually("registration succeeds again") {
                try await TestDevice.register(fixture, OnboardingFixture.known).status == 200
            }
        }
    }

    /// The person keeps the realm of their first address.
    @Test(arguments: ["true", "false"]) func changedAddressKeepsRealm(hidesUnknown: String) async throws {
        try await withOnboarding(settings: "hide_unknown = \(hidesUnknown)") { fixture in
            let email = "bo@example.com"
            let second = try await fixture.deviceAfterChange(to: email)
            let socket = try await second.connect()
            #expect(try await TestBrowser(fixture: fixture).logIn(at: second.loginURL, as: email).status == 200)
            try await socket.event("data ready")
            #expect(try await socket.event("realm initialized").payload["path"] == "/users/ana@example.com")
        }
    }

    /// The provider re-created the account, and an administrator unbound the old one.
    @Test func reboundAccountKeepsRealm() async throws {
        try await withOnboarding { fixture in
            fixture.identity.add(IdentityPerson(email: OnboardingFixture.known, subject: "old"))
            let first = try await TestDevice(fixture)
            #expect(try await TestBrowser(fixture: fixture).logIn(at: first.loginURL).status == 200)
            try await fixture.initializeWhenRegistered()
            fixture.identity.add(IdentityPerson(email: OnboardingFixture.known, subject: "new"))
            try fixture.withDatabase { connection in
                _ = try connection.run("UPDATE access.person SET issuer = NULL, subject = NULL, bound_at = NULL")
            }
            let second = try await TestDevice(fixture)
            let socket = try await second.connect()
            #expect(try await TestBrowser(fixture: fixture).logIn(at: second.loginURL).status == 200)
            try await socket.event("data ready")
            #expect(try await socket.event("realm initialized").payload["path"] == "/users/ana@example.com")
        }
    }

    @Test func loginOutcomesAreAudited() async throws {
        try await withOnboarding { fixture in
            let device = try await TestDevice(fixture)
            let browser = TestBrowser(fixture: fixture)
            let retry = try #require(try await browser.logIn(at: device.loginURL, decision: "refuse").retry)
            #expect(try await browser.logIn(at: retry).status == 200)
            let records = try fixture.withDatabase { connection in
                try connection.run(
                    """
                    SELECT actor, action, subject, detail->>'problem', address, detail->>'device' FROM access.audit
                    ORDER BY id
                    """
                ).map { row in try (0..<6).map { try row.optional($0, as: String.self) ?? "" } }
            }
            let from = (subject: "Test phone", address: "192.0.2.1", device: "192.0.2.1")
            #expect(
                records == [
                    [
                        OnboardingFixture.known, "login.failed", from.subject, "consent-refused", from.address,
                        from.device,
                    ],
                    [
                        OnboardingFixture.known, "login.bound", "\(fixture.issuer) \(OnboardingFixture.known)", "",
                        from.address, "",
                    ],
                    [OnboardingFixture.known, "login.succeeded", from.subject, "", from.address, from.device],
                ])
        }
    }

    @Test func reassignedAddressIsRejected() async throws {
        try await withOnboarding { fixture in
            let first = try await TestDevice(fixture)
            #expect(try await TestBrowser(fixture: fixture).logIn(at: first.loginURL).status == 200)
            fixture.identity.add(IdentityPerson(email: OnboardingFixture.known, subject: "another-account"))
            let second = try await TestDevice(fixture)
            let socket = try await second.connect()
            let page = try await TestBrowser(fixture: fixture).logIn(at: second.loginURL)
            #expect(page.problem == "identity-bound-elsewhere" && page.retry == nil)
            #expect(try await socket.event("error").payload["code"] == "identity-bound-elsewhere")
            #expect(await socket.events.map(\.name) == ["error"])
        }
    }
}

/// Waits until a condition holds.
func eventually(_ label: String, _ condition: () async throws -> Bool) async throws {
    let deadline = ContinuousClock.now + patienceMax
    while try await !condition() {
        guard .now < deadline else {
            Issue.record("timed out: \(label)")
            throw CancellationError()
        }
        try await Task.sleep(for: .milliseconds(10))
    }
}

extension OnboardingFixture {
    /// Logs the known person in, changes their address at the provider and the back end, and registers a device with
    /// the new address.
    func deviceAfterChange(to email: String) async throws -> TestDevice {
        identity.add(IdentityPerson(email: Self.known, subject: "ana"))
        let first = try await TestDevice(self)
        #expect(try await TestBrowser(fixture: self).logIn(at: first.loginURL).status == 200)
        try await initializeWhenRegistered()
        identity.add(IdentityPerson(email: email, subject: "ana"))
        return try await TestDevice(self, email)
    }

    /// Marks a realm as initialised after it is registered.
    func initializeWhenRegistered(_ email: String = known) async throws {
        try await eventually("the realm of \(email) is registered") { try isRegistered(email) }
        try initialize(email)
    }
}
