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

/// Successful onboarding of a device, with its steps in different orders.
@Suite(.ownThreads) struct OnboardingFlowTests {
    @Test func newPersonIsOnboarded() async throws {
        try await withOnboarding { fixture in
            let device = try await TestDevice(fixture)
            #expect(device.session.utf8.count == 43)
            #expect(device.loginURL.hasPrefix(fixture.issuer + "/authorize?"))
            let socket = try await device.connect()
            let page = try await TestBrowser(fixture: fixture).logIn(at: device.loginURL)
            #expect(page.status == 200 && page.title == "You are logged in", "\(page.body)")

            let token = try await socket.event("token")
            #expect(token.payload["token_type"] == "Bearer")
            let realm = try await socket.event("realm initialized")
            #expect(realm.payload == ["path": "/users/ana@example.com"])
            try fixture.initialize()
            let ready = try await socket.event("data ready")
            for event in [token, realm, ready] { try await socket.acknowledge(event.id) }
            #expect(try await socket.ended() == 1000)
            // The token has the person's address, to which its subject is bound.
            let claims = try TestToken(token.payload["access_token"] ?? "")
            #expect(claims.email == "ana@example.com" && claims.aud == OnboardingFixture.audience)
            let bound = try fixture.withDatabase { connection in
                let rows = try connection.run("SELECT email, subject FROM access.person WHERE subject IS NOT NULL")
                return try rows.map { try $0.value(0, as: String.self) + " " + $0.value(1, as: String.self) }
            }
            #expect(bound == ["ana@example.com ana@example.com"])
        }
    }

    enum Moment: Int, CaseIterable {
        case beforeTheLogin, afterTheLogin, afterTheRealm, afterTheData
    }

    @Test(arguments: Moment.allCases) func socketReceivesAllEventsWheneverItOpens(moment: Moment) async throws {
        try await withOnboarding { fixture in
            let device = try await TestDevice(fixture)
            var socket: TestSocket?
            if moment == .beforeTheLogin { socket = try await device.connect() }
            _ = try await TestBrowser(fixture: fixture).logIn(at: device.loginURL)
            if moment == .afterTheLogin { socket = try await device.connect() }
            try await eventually("the realm's event is stored") {
                try fixture.count("SELECT count(*) FROM onboarding.event WHERE name = 'realm initialized'") == 1
            }
            if moment == .afterTheRealm { socket = try await device.connect() }
            try fixture.initialize()
            try await eventually("the data's event is stored") {
                try fixture.count("SELECT count(*) FROM onboarding.event WHERE name = 'data ready'") == 1
            }
            if moment == .afterTheData { socket = try await device.connect() }
            let open = try #require(socket)
            try await open.event("data ready")
            #expect(await open.events.map(\.name) == ["token", "realm initialized", "data ready"])
        }
    }

    @Test func unacknowledgedEventsAreResentByAnyInstance() async throws {
        try await withOnboarding(instances: 2) { fixture in
            let device = try await TestDevice(fixture)
            let first = try await device.connect()
            var browser = TestBrowser(fixture: fixture)
            // The callback reaches the other instance.
            browser.instance = 1
            _ = try await browser.logIn(at: device.loginURL)
            let token = try await first.event("token")
            let realm = try await first.event("realm initialized")
            try await first.acknowledge(realm.id)
            try await eventually("the acknowledgement is stored") {
                try fixture.count(
                    "SELECT count(*) FROM onboarding.event WHERE payload IS NULL AND name = 'realm initialized'") == 1
            }
            await first.disconnect()
            try fixture.initialize()
            let second = try await device.connect(instance: 1)
            try await second.event("data ready")
            #expect(await second.events.map(\.name) == ["token", "data ready"])
            #expect(await second.events.first == token)
        }
    }

    @Test func devicesReconnectAfterInstanceStops() async throws {
        try await withOnboarding(instances: 2) { fixture in
            let device = try await TestDevice(fixture, instance: 1)
            let first = try await device.connect(instance: 1)
            await fixture.stopInstance(1)
            #expect(try await first.ended() == 1001)
            let second = try await device.connect()
            _ = try await TestBrowser(fixture: fixture).logIn(at: device.loginURL)
            try await fixture.initializeWhenRegistered()
            try await second.event("data ready")
            #expect(await second.events.map(\.name) == ["token", "realm initialized", "data ready"])
        }
    }

    @Test(arguments: [0, 1]) func newerSocketReplacesOlder(instance: Int) async throws {
        try await withOnboarding(instances: 2) { fixture in
            let device = try await TestDevice(fixture)
            let first = try await device.connect()
            let second = try await device.connect(instance: instance)
            #expect(try await first.ended() == 4002)
            _ = try await TestBrowser(fixture: fixture).logIn(at: device.loginURL)
            try await second.event("token")
        }
    }

    @Test func twoDevicesOfOnePersonLogInConcurrently() async throws {
        try await withOnboarding { fixture in
            let devices = [try await TestDevice(fixture), try await TestDevice(fixture)]
            #expect(devices[0].session != devices[1].session)
            let sockets = [try await devices[0].connect(), try await devices[1].connect()]
            let browser = TestBrowser(fixture: fixture)
            async let one = browser.logIn(at: devices[0].loginURL)
            async let two = browser.logIn(at: devices[1].loginURL)
            _ = try await (one, two)
            try await fixture.initializeWhenRegistered()
            for socket in sockets {
                try await socket.event("data ready")
                #expect(await socket.events.map(\.name) == ["token", "realm initialized", "data ready"])
            }
            #expect(try fixture.count("SELECT count(*) FROM access.person") == 1)
            #expect(try fixture.count("SELECT count(*) FROM realm.object WHERE kind = 'Realms'") == 1)
        }
    }

    @Test func realmIsInitialisedAtLoginIfConfigured() async throws {
        try await withOnboarding(settings: "initialise_on = 'login'") { fixture in
            let device = try await TestDevice(fixture)
            let socket = try await device.connect()
            try await eventually("the session is processed") {
                try fixture.count("SELECT count(*) FROM onboarding.session WHERE NOT wants_realm") == 1
            }
            #expect(try !fixture.isRegistered(OnboardingFixture.known))
            _ = try await TestBrowser(fixture: fixture).logIn(at: device.loginURL)
            try await socket.event("realm initialized")
        }
    }

    @Test func explicitAddressBelongsToEnvironment() async throws {
        try await withOnboarding { fixture in
            try fixture.withDatabase { connection in
                try connection.run([
                    "INSERT INTO access.address VALUES ('guest@elsewhere.example', 1)",
                    "INSERT INTO backend.person VALUES (1, 'guest@elsewhere.example', '{}')",
                ])
                return
            }
            let device = try await TestDevice(fixture, "Guest@elsewhere.example")
            let socket = try await device.connect()
            _ = try await TestBrowser(fixture: fixture).logIn(at: device.loginURL, as: "guest@elsewhere.example")
            let event = try await socket.event("realm initialized")
            #expect(event.payload["path"] == "/users/guest@elsewhere.example")
            let other = try await TestDevice.register(fixture, "other@elsewhere.example")
            #expect(other.status == 404)
        }
    }

    @Test func rotatedKeysAndClockSkewAreTolerated() async throws {
        try await withOnboarding { fixture in
            for seconds in [0, 45, -45] {
                fixture.identity.switches = IdentitySwitches(clockSkewSeconds: seconds)
                try await fixture.keys.rotate()
                // Keys are refetched at most once per second.
                try await eventually("new keys are accepted, with a skew of \(seconds) s") {
                    let device = try await TestDevice(fixture)
                    return try await TestBrowser(fixture: fixture).logIn(at: device.loginURL).status == 200
                }
            }
        }
    }

    @Test func refreshTokenIsStoredEncrypted() async throws {
        try await withOnboarding(settings: "scopes = '{openid,email,offline_access}'") { fixture in
            let device = try await TestDevice(fixture)
            _ = try await TestBrowser(fixture: fixture).logIn(at: device.loginURL)
            let sealed = try fixture.withDatabase { connection in
                try connection.run("SELECT token FROM onboarding.refresh_token")[0].value(0, as: Bytea.self)
            }
            #expect(sealed.bytes.count > 43 + 28)
            #expect(try fixture.count("SELECT count(*) FROM onboarding.refresh_token") == 1)
            let context = SecretContext.refreshToken(fixture.environment, person: 1)
            let token = try fixture.secrets.openText(sealed.bytes, at: context)
            #expect(fixture.identity.find(token, as: .refreshToken) != nil)
            // It cannot be opened for another person; and it can be revoked.
            #expect(throws: SecretBox.Failure.self) {
                _ = try fixture.secrets.openText(
                    sealed.bytes, at: SecretContext.refreshToken(fixture.environment, person: 2))
            }
            let provider = OpenIDProvider(client: fixture.client)
            try await provider.revoke(
                token, as: ProviderClient(id: OnboardingFixture.clientID, secret: OnboardingFixture.clientSecret),
                at: try await provider.discover(fixture.issuer))
            #expect(fixture.identity.find(token, as: .refreshToken) == nil)
            // The database does not contain the session id.
            let dump = try fixture.withDatabase { connection in
                try connection.run("SELECT string_agg(s::text, '') FROM onboarding.session s")[0].value(
                    0, as: String.self)
            }
            #expect(!dump.contains(device.session))
        }
    }
}

/// The claims of a token, not verified.
struct TestToken: Decodable {
    let iss: String
    let sub: String
    let aud: String
    let email: String

    init(_ token: String) throws {
        let parts = token.split(separator: ".")
        try #require(parts.count == 3, "\(token)")
        var text = parts[1].replacingOccurrences(of: "-", with: "+").replacingOccurrences(of: "_", with: "/")
        while text.utf8.count % 4 != 0 { text += "=" }
        self = try JSONDecoder().decode(TestToken.self, from: try #require(Data(base64Encoded: text)))
    }
}
