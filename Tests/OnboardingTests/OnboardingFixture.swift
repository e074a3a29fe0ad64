import Access
import Foundation
import HTTPClient
import Identity
import LocalCluster
import Logging
import Model
import NIOPosix
import ObjectStore
import Postgres
import Secrets
import ServiceLifecycle
import TestSupport
import Testing

@testable import HTTPServer
@testable import Onboarding
@testable import Sandbox
@testable import ServiceRuntime
@testable import ServiceSettings
@testable import Telemetry

/// Running instances of onboarding and an identity provider, with a dedicated database.
struct OnboardingFixture: Sendable {
    let database: String
    let environment = EnvironmentID(rawValue: 1)
    let ports: [Int]
    let identityPort: Int
    let identity: IdentityState
    let keys: IdentityKeys
    let secrets: SecretBox
    /// The clock of token validation.
    let clock: TestClock
    let client = Client()
    /// That of all instances.
    let health: Health
    let stopInstance: @Sendable (Int) async -> Void

    static let clientID = "fieldpost-app"
    static let clientSecret = "s3cret: with + signs"
    static let audience = "fieldpost"
    static let known = "ana@example.com"
    static let unknown = "eve@example.com"

    var issuer: String { "http://127.0.0.1:\(identityPort)/acme" }
    func url(_ path: String, instance: Int = 0) -> String { "http://127.0.0.1:\(ports[instance])\(path)" }

    /// Runs `body` with a connection to the database. Blocks, which tests may.
    func withDatabase<Success: Sendable>(_ body: @Sendable (inout Connection) throws -> Success) throws -> Success {
        var connection = try Connection(database)
        return try body(&connection)
    }

    /// Marks a realm as initialised, like `realm-initializer`.
    func initialize(_ email: String = known) throws {
        try withDatabase { connection in
            var directory = RealmDirectory()
            let users = try #require(
                try directory.id(of: .users, in: environment, create: false, on: &connection))
            let key = ObjectKey(
                realm: users, kind: .realms, id: Registration.objectID(of: email, foundedAs: environment))
            var batch = WriteBatch(environment: environment)
            let stored = try RealmObject.stored(key, in: environment, on: &connection)
            try batch.patch(stored, CanonicalJSON(#"{"isInitialized":true}"#), decision: 0)
            let outcome = try batch.commit(on: &connection)
            #expect(outcome.positions[key] != nil, "the realm of \(email) was not registered")
        }
    }

    /// Whether a person's realm is registered.
    func isRegistered(_ email: String) throws -> Bool {
        try withDatabase { connection in
            let id = Registration.objectID(of: email, foundedAs: environment)
            return try connection.run("SELECT FROM realm.object WHERE kind = 'Realms' AND id = \(id)").count == 1
        }
    }

    func count(_ statement: Statement) throws -> Int {
        try withDatabase { Int(try $0.run(statement)[0].value(0, as: Int64.self)) }
    }
}

/// Limits the number of concurrent fixtures, because PostgreSQL's connections are limited.
private actor FixturePermits {
    static let shared = FixturePermits(count: 8)

    private var count: Int
    private var waiting: [CheckedContinuation<Void, Never>] = []

    init(count: Int) { self.count = count }

    func acquire() async {
        if count > 0 {
            count -= 1
        } else {
            await withCheckedContinuation { waiting.append($0) }
        }
    }

    func release() { if waiting.isEmpty { count += 1 } else { waiting.removeFirst().resume() } }
}

/// Starts the services, runs `body`, and stops them.
func withOnboarding(
    instances: Int = 1, limits: OnboardingLimits = .quick, networkConnectionCountMax: Int = 0, proxyCount: Int = 1,
    settings: String = "", app: AppFolder? = nil, logger: Logger = .quiet,
    _ body: @Sendable (OnboardingFixture) async throws -> Void
) async throws {
    await FixturePermits.shared.acquire()
    let outcome: Result<Void, any Error>
    do {
        outcome = .success(
            try await runOnboarding(
                instances: instances, limits: limits, networkConnectionCountMax: networkConnectionCountMax,
                proxyCount: proxyCount, settings: settings, app: app, logger: logger, body))
    } catch {
        outcome = .failure(error)
    }
    await FixturePermits.shared.release()
    try outcome.get()
}

private func runOnboarding(
    instances: Int, limits: OnboardingLimits, networkConnectionCountMax: Int, proxyCount: Int, settings: String,
    app: AppFolder?, logger: Logger,
    _ body: @Sendable (OnboardingFixture) async throws -> Void
) async throws {
    let database = try makeFoundationDatabase()
    let secrets = try SecretBox([Data((0..<32).map { UInt8($0) }).base64EncodedString()])
    let keys = try await IdentityKeys.load(from: nil)
    let state = IdentityState(password: "right")
    let clock = TestClock()
    let ports = try (0..<instances).map { _ in try Ports.free() }
    let identityPort = try Ports.free()
    state.add(
        IdentityClient(
            id: OnboardingFixture.clientID, secret: OnboardingFixture.clientSecret,
            redirectURIs: ["http://127.0.0.1:\(ports[0])/auth_callback"]))
    let provider = IdentityProvider(
        issuer: "http://127.0.0.1:\(identityPort)", audience: OnboardingFixture.audience, keys: keys, state: state)
    let runtime = ComponentEnvironment(
        logger: logger, health: Health(stallMax: .seconds(60)), eventLoops: MultiThreadedEventLoopGroup.singleton)
    try makeEnvironment(database, identityPort: identityPort, secrets: secrets, settings: settings)

    let (started, announce) = AsyncStream.makeStream(of: Int.self)
    var groups: [(group: ServiceGroup, onboarding: Onboarding?, running: Task<Void, any Error>)] = []
    func start(_ components: [Component], _ onboarding: Onboarding?) {
        let group = ServiceGroup(services: components.map { $0.make(runtime) }, logger: logger)
        groups.append((group, onboarding, Task { try await group.run() }))
    }
    start(
        [
            .http("identity", host: "127.0.0.1", port: identityPort, started: { announce.yield($0) }) {
                provider.addRoutes(to: $0)
            }
        ], nil)
    for port in ports {
        let onboarding = try await Onboarding(
            database: database, url: "http://127.0.0.1:\(ports[0])", secrets: secrets, limits: limits,
            clients: ClientAddress(proxyCount: proxyCount), app: app, health: runtime.health, logger: logger,
            now: { clock.now })
        start(
            onboarding.components(
                host: "127.0.0.1", port: port, networkConnectionCountMax: networkConnectionCountMax,
                started: { announce.yield($0) }), onboarding)
    }
    var startedCount = 0
    for await _ in started {
        startedCount += 1
        if startedCount == instances + 1 { break }
    }
    let parts = groups
    let fixture = OnboardingFixture(
        database: database, ports: ports, identityPort: identityPort, identity: state, keys: keys, secrets: secrets,
        clock: clock, health: runtime.health,
        stopInstance: { index in
            await parts[index + 1].group.triggerGracefulShutdown()
            _ = try? await parts[index + 1].running.value
        })
    let outcome: Result<Void, any Error>
    do { outcome = .success(try await body(fixture)) } catch { outcome = .failure(error) }
    fixture.client.shutDown()
    for part in parts { await part.group.triggerGracefulShutdown() }
    for part in parts {
        _ = try? await part.running.value
        part.onboarding?.close()
    }
    try outcome.get()
}

extension Logger {
    static var quiet: Logger {
        var logger = Logger(label: "test")
        logger.logLevel = ProcessInfo.processInfo.environment["ONBOARDING_LOG"] == nil ? .critical : .debug
        return logger
    }
}

extension OnboardingLimits {
    /// Short intervals, and rate limits that only their own tests reach.
    static var quick: OnboardingLimits {
        var limits = OnboardingLimits()
        limits.interval = .milliseconds(5)
        limits.poolSize = 2
        limits.refetchMin = .zero
        limits.clientCountMax = 10_000
        limits.addressCountMax = 1_000
        limits.domainCountMax = 10_000
        return limits
    }
}

private func makeEnvironment(
    _ database: String, identityPort: Int, secrets: SecretBox, settings: String
) throws {
    var connection = try Connection(database)
    let sealed = Bytea(
        try secrets.seal(
            OnboardingFixture.clientSecret, at: SecretContext.clientSecret(EnvironmentID(rawValue: 1))))
    try EnvironmentRows(
        id: 1,
        provider: .init(
            issuer: "http://127.0.0.1:\(identityPort)/acme", audience: OnboardingFixture.audience,
            clientID: OnboardingFixture.clientID, clientSecret: sealed),
        domains: ["example.com"], backend: .init(), people: [OnboardingFixture.known: [:], "bo@example.com": [:]]
    ).insert(on: &connection)
    if !settings.isEmpty { try connection.runScript("UPDATE access.provider SET \(settings)") }
}
