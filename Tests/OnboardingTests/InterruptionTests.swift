import Access
import Foundation
import HTTPClient
import Model
import Postgres
import Secrets
import Tenants
import TestSupport
import Testing

@testable import Identity
@testable import Onboarding
@testable import Sandbox

/// Interruptions: instances that stop, an unavailable database, a busy environment.
@Suite(.ownThreads) struct InterruptionTests {
    /// An instance consumed the attempt and was killed before its outcome.
    @Test func interruptedAttemptOffersRetry() async throws {
        try await withOnboarding { fixture in
            let device = try await TestDevice(fixture)
            let socket = try await device.connect()
            let browser = TestBrowser(fixture: fixture)
            let back = try await browser.logIn(at: device.loginURL, stopsBeforeCallback: true)
            try fixture.withDatabase { connection in
                _ = try connection.run("UPDATE onboarding.login SET used_at = now()")
            }
            // While it may still be in progress, it is not offered.
            #expect(try await browser.open(back.url).status == 400)
            try fixture.withDatabase { connection in
                _ = try connection.run("UPDATE onboarding.login SET used_at = now() - interval '31 seconds'")
            }
            let page = try await browser.open(back.url)
            #expect(page.problem == "interrupted" && page.status == 503, "\(page.body)")
            let event = try await socket.event("error")
            #expect(event.payload["code"] == "interrupted" && event.payload["login_url"] == page.retry)
            #expect(try await browser.open(back.url).status == 400)
            #expect(try await browser.logIn(at: try #require(page.retry)).status == 200)
            try await socket.event("token")
        }
    }

    /// The database becomes unavailable after the code is spent: the login's completion retries.
    @Test func loginSurvivesDatabaseOutage() async throws {
        try await withOnboarding { fixture in
            let device = try await TestDevice(fixture)
            let browser = TestBrowser(fixture: fixture)
            let back = try await browser.logIn(at: device.loginURL, stopsBeforeCallback: true)
            fixture.identity.switches = IdentitySwitches(failure: .held, failureAt: "token")
            async let page = browser.open(back.url)
            try await eventually("the attempt is used") {
                try fixture.count("SELECT count(*) FROM onboarding.login WHERE used_at IS NOT NULL") == 1
            }
            try await fixture.withoutDatabase {
                fixture.identity.switches = IdentitySwitches()
                try await Task.sleep(for: .seconds(1))
            }
            #expect(try await page.status == 200)
            let socket = try await device.connect()
            try await socket.event("token")
            #expect(try fixture.count("SELECT count(*) FROM access.audit WHERE action = 'login.succeeded'") == 1)
        }
    }

    /// Registration retries while the database is busy or unavailable, before the device has to.
    @Test func registrationRetriesDuringDatabaseOutage() async throws {
        var limits = OnboardingLimits.quick
        limits.registerRetryMax = .seconds(60)
        try await withOnboarding(limits: limits) { fixture in
            var registering: Task<Int, any Error>?
            try await fixture.withoutDatabase {
                registering = Task { try await TestDevice.register(fixture, OnboardingFixture.known).status }
                try await Task.sleep(for: .seconds(1))
            }
            #expect(try await registering?.value == 200)
        }
        limits.registerRetryMax = .zero
        try await withOnboarding(limits: limits) { fixture in
            try await fixture.withoutDatabase {
                let response = try await TestDevice.register(fixture, OnboardingFixture.known)
                #expect(response.status == 503 && response.headers["Retry-After"] != nil)
            }
        }
    }

    @Test func sessionExpiredDuringLoginGetsNoToken() async throws {
        try await withOnboarding { fixture in
            let device = try await TestDevice(fixture)
            let browser = TestBrowser(fixture: fixture)
            let back = try await browser.logIn(at: device.loginURL, stopsBeforeCallback: true)
            fixture.identity.switches = IdentitySwitches(failure: .held, failureAt: "token")
            async let page = browser.open(back.url)
            try await eventually("the attempt is used") {
                try fixture.count("SELECT count(*) FROM onboarding.login WHERE used_at IS NOT NULL") == 1
            }
            try fixture.withDatabase { connection in
                _ = try connection.run("UPDATE onboarding.session SET expires_at = now()")
            }
            fixture.identity.switches = IdentitySwitches()
            #expect(try await page.status == 400)
            #expect(try fixture.count("SELECT count(*) FROM onboarding.event") == 0)
        }
    }

    /// Another environment's counter is locked, for example by a large import.
    @Test func busyEnvironmentDoesNotDelayOthers() async throws {
        try await withOnboarding { fixture in
            try fixture.addEnvironment(number: 2, domain: "other.example", people: ["zoe@other.example"])
            var busy = try Connection(fixture.database)
            try busy.runScript(
                """
                BEGIN;
                SET LOCAL idle_in_transaction_session_timeout = 0;
                SELECT FROM realm.environment WHERE id = 2 FOR NO KEY UPDATE;
                """)
            _ = try await TestDevice(fixture, "zoe@other.example")
            let device = try await TestDevice(fixture)
            let socket = try await device.connect()
            #expect(try await TestBrowser(fixture: fixture).logIn(at: device.loginURL).status == 200)
            try await fixture.initializeWhenRegistered()
            try await socket.event("data ready")
            #expect(try fixture.count("SELECT count(*) FROM onboarding.session WHERE wants_realm") == 1)
            try busy.runScript("ROLLBACK")
            try await eventually("the other environment's session is processed") {
                try fixture.count("SELECT count(*) FROM onboarding.session WHERE wants_realm") == 0
            }
        }
    }

    /// The instance lacks the key, or the payload was altered.
    @Test func undecryptableEventClosesOnlyItsSocket() async throws {
        try await withOnboarding { fixture in
            let (ana, bo) = (try await TestDevice(fixture), try await TestDevice(fixture, "bo@example.com"))
            let sockets = [try await ana.connect(), try await bo.connect()]
            try fixture.withDatabase { connection in
                let session = try #require(Capability(ana.session)).key
                _ = try connection.run([
                    "UPDATE onboarding.counter SET position = position + 1",
                    """
                    INSERT INTO onboarding.event (session_id, position, name, payload)
                    SELECT \(session), position, 'error', '\\x00' FROM onboarding.counter
                    """,
                ])
            }
            #expect(try await sockets[0].ended() == 1011)
            let browser = TestBrowser(fixture: fixture)
            #expect(try await browser.logIn(at: bo.loginURL, as: "bo@example.com").status == 200)
            try await sockets[1].event("token")
        }
    }

    /// A device is notified of the realm of the address it entered, while the login assigns another person's realm.
    ///
    /// - Parameter isWaiting: Whether the login waits for the notifier's lock; otherwise the notifier waits for the
    ///   login's.
    @Test(arguments: [true, false]) func notifiedRealmIsTheSessionPersons(isWaiting: Bool) async throws {
        try await withOnboarding(settings: "hide_unknown = false") { fixture in
            let browser = TestBrowser(fixture: fixture)
            let email = "bo@example.com"
            let second = try await fixture.deviceAfterChange(to: email)
            let socket = try await second.connect()
            try await socket.event("realm initialized")
            // The notifier locks the counter last, the login locks the session first.
            var other = try Connection(fixture.database, limits: .openTransaction)
            try other.runScript(
                isWaiting
                    ? "BEGIN; SELECT FROM onboarding.counter FOR UPDATE"
                    : "BEGIN; SELECT FROM onboarding.session WHERE email = '\(email)' FOR UPDATE")
            if isWaiting {
                try fixture.initialize(email)
                try await fixture.waitForLocks(1)
            }
            async let page = browser.logIn(at: second.loginURL, as: email)
            try await fixture.waitForLocks(isWaiting ? 2 : 1)
            if !isWaiting {
                try fixture.initialize(email)
                try await fixture.waitForLocks(2)
            }
            try other.runScript("COMMIT")
            #expect(try await page.status == 200)
            try await socket.wait("the person's realm") { socket in
                let last = socket.events.last { $0.name == "realm initialized" }
                return last?.payload["path"] == "/users/ana@example.com" && socket.events.last?.name == "data ready"
            }
        }
    }

    /// The commit's response was lost, and later events were stored meanwhile.
    @Test func repeatedLoginCompletionKeepsEvents() async throws {
        try await withOnboarding { fixture in
            let browser = TestBrowser(fixture: fixture)
            let email = "bo@example.com"
            let second = try await fixture.deviceAfterChange(to: email)
            let socket = try await second.connect()
            #expect(try await browser.logIn(at: second.loginURL, as: email).status == 200)
            try await socket.event("data ready")
            let session = try #require(Capability(second.session)).key
            let eventCount: Statement = "SELECT count(*) FROM onboarding.event WHERE session_id = \(session)"
            #expect(try fixture.count(eventCount) == 3)
            let isDone = try fixture.withDatabase { connection in
                let address = try #require(EmailAddress(email))
                let lookup = try Organisation.find(address, fixture.secrets, on: &connection)
                guard case .organisation(let organisation, _) = lookup else { return false }
                let login = SessionStore.PendingLogin(
                    session: session, state: Bytea([]), email: address, organisation: organisation, nonce: "",
                    sealedVerifier: Bytea([]), deviceAddress: "", deviceName: "")
                let row = try connection.run("SELECT id, object_id FROM access.person")[0]
                let person = BoundPerson(
                    environment: fixture.environment, id: try row.value(0), email: OnboardingFixture.known,
                    realm: try .user(OnboardingFixture.known), object: try row.value(1))
                let identity = Identity(
                    environment: 1, issuer: fixture.issuer, subject: "ana", email: email, name: nil, expires: 0)
                let token = EventStore.NewEvent(
                    session: session, event: .token(access: "t", expires: 0, credential: nil))
                return try SessionStore(secrets: fixture.secrets, limits: .quick).complete(
                    login, person: person, token: token, identity: identity, device: nil, from: "",
                    events: EventStore(secrets: fixture.secrets), on: &connection)
            }
            #expect(isDone)
            #expect(try fixture.count(eventCount) == 3)
        }
    }

    /// The acknowledgement was stored, but the close frame did not reach the device.
    @Test func reconnectAfterCompletionIsClosedNormally() async throws {
        try await withOnboarding { fixture in
            let device = try await TestDevice(fixture)
            let socket = try await device.connect()
            #expect(try await TestBrowser(fixture: fixture).logIn(at: device.loginURL).status == 200)
            try await fixture.initializeWhenRegistered()
            try await socket.event("data ready")
            for event in await socket.events { try await socket.acknowledge(event.id) }
            #expect(try await socket.ended() == 1000)
            #expect(try await device.connect().ended() == 1000)
        }
    }
}

extension OnboardingFixture {
    /// Runs `body` while the database rejects connections.
    func withoutDatabase(_ body: () async throws -> Void) async throws {
        let name = try withDatabase { try $0.run("SELECT current_database()")[0].value(0, as: String.self) }
        var outside = try Connection(try TestServer.shared.makeDatabase())
        try outside.runScript("ALTER DATABASE \(name) ALLOW_CONNECTIONS false")
        try outside.run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = \(name)")
        let outcome: Result<Void, any Error>
        do { outcome = .success(try await body()) } catch { outcome = .failure(error) }
        try outside.runScript("ALTER DATABASE \(name) ALLOW_CONNECTIONS true")
        try outcome.get()
    }

    /// Waits until `count` sessions of the database wait for a lock.
    fileprivate func waitForLocks(_ count: Int) async throws {
        try await eventually("\(count) sessions wait for a lock") {
            try self.count(
                """
                SELECT count(*) FROM pg_stat_activity
                WHERE datname = current_database() AND wait_event_type = 'Lock'
                """) >= count
        }
    }

    /// A second organisation, at the same provider.
    fileprivate func addEnvironment(number: Int32, domain: String, people: [String]) throws {
        let other = EnvironmentID(rawValue: number)
        let sealed = Bytea(try secrets.seal(Self.clientSecret, at: SecretContext.clientSecret(other)))
        let rows = EnvironmentRows(
            id: number, name: "other",
            provider: .init(
                issuer: "http://127.0.0.1:\(identityPort)/\(domain)", audience: Self.audience, clientID: Self.clientID,
                clientSecret: sealed),
            domains: [domain], backend: .init(), people: Dictionary(uniqueKeysWithValues: people.map { ($0, [:]) }))
        try withDatabase { connection in _ = try rows.insert(on: &connection) }
    }
}
