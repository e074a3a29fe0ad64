import AdminQueries
import Essentials
import Foundation
import HTTPClient
import Identity
import LocalCluster
import Logging
import Model
import NIOPosix
import Postgres
import ServiceLifecycle
import TestSupport
import Testing

@testable import HTTPServer
@testable import LagMonitor
@testable import Sandbox
@testable import ServiceRuntime
@testable import ServiceSettings
@testable import Telemetry

/// A running console and identity provider, with a dedicated database.
struct ConsoleFixture: Sendable {
    let database: String
    let url: String
    let issuer: String
    let identity: IdentityState
    let board = SnapshotBoard()
    let client = Client()

    static let clientID = "console"
    static let clientSecret = "s3cret: with + signs"
    static let password = "right"
    static let administrator = "ana@example.com"
    static let nonAdministrator = "eve@example.com"

    /// Runs `body` with a connection to the database. Blocks, which tests may.
    func withDatabase<Success: Sendable>(_ body: @Sendable (inout Connection) throws -> Success) throws -> Success {
        var connection = try Connection(database)
        return try body(&connection)
    }

    /// Returns the version of a key that the page displays.
    func version(of key: String) throws -> String {
        try withDatabase {
            try DeferredKeyStore.load(DeferredKeyStore.Selection(keys: [key]), countMax: 1, on: &$0).first?.version
                ?? ""
        }
    }

    /// Returns the request body of an action on a key.
    func body(_ key: String, group: String = "entry-submitter", environment: Int = 1, version: String) -> String {
        #"{"group":"\#(group)","environment":\#(environment),"key":"\#(key)","version":"\#(version)"}"#
    }

    /// Returns the audit records of an action as actor and subject.
    func acts(_ action: String) throws -> [String] {
        try withDatabase {
            try $0.run("SELECT actor || ' ' || subject FROM access.audit WHERE action = \(action) ORDER BY id")
                .decode(String.self)
        }
    }

    /// Adds a person's realm with entries to each environment.
    func addEntries(_ ids: [UUID], of email: String, fields: String) throws {
        try withDatabase { connection in
            try connection.run(
                """
                INSERT INTO realm.realm (environment_id, id, path)
                SELECT id, 77, \("/users/" + email) FROM realm.environment
                """)
            try connection.run(
                """
                INSERT INTO store.object (environment_id, realm_id, kind, deleted, id, position, source_position,
                    edit_position, fields)
                SELECT e.id, 77, \(Kind.timeEntry), false, i, 1, 0, 1, \(fields)
                FROM realm.environment e CROSS JOIN unnest(\(ids)) AS i
                """)
        }
    }

    /// Inserts a deferred key: dead-lettered, unless it waits for its back end.
    func park(
        _ key: String, group: String = "entry-submitter", topic: String = "entry.events", reason: String,
        subject: String = "", isCircuit: Bool = false
    ) throws {
        try withDatabase { connection in
            _ = try connection.run(
                """
                INSERT INTO pipeline.parked (group_name, environment_id, key, topic, partition, subject, position,
                    reason, is_dead, is_circuit, attempts, next_at)
                SELECT \(group), id, \(key), \(topic), 0, \(subject), 1, \(reason), \(!isCircuit), \(isCircuit), 3,
                    now()
                FROM realm.environment ORDER BY id LIMIT 1
                """)
        }
    }
}

/// Starts the services, runs `body`, and stops them.
///
/// - Parameters:
///   - database: A database that may not exist yet; `nil` creates one.
///   - brokers: The brokers' address; by default one without a broker.
func withConsole(
    idleMax: Duration = .seconds(600), database: String? = nil, brokers: String = "127.0.0.1:1", proxyCount: Int = 0,
    now: @escaping @Sendable () -> ContinuousClock.Instant = { .now },
    _ body: @Sendable (ConsoleFixture) async throws -> Void
) async throws {
    // The environment's own connection is not needed.
    let exists = database == nil
    let database = try database ?? TestEnvironment().conninfo
    let (port, identityPort) = (try Ports.free(), try Ports.free())
    let url = "http://127.0.0.1:\(port)"
    let state = IdentityState(password: ConsoleFixture.password)
    state.add(
        IdentityClient(
            id: ConsoleFixture.clientID, secret: ConsoleFixture.clientSecret, redirectURIs: [url + "/callback"]))
    let issuer = "http://127.0.0.1:\(identityPort)"
    let provider = IdentityProvider(
        issuer: issuer, audience: "fieldpost", keys: try await IdentityKeys.load(from: nil), state: state)
    var logger = Logger(label: "test")
    logger.logLevel = .critical
    let fixture = ConsoleFixture(database: database, url: url, issuer: issuer, identity: state)
    var settings = ConsoleSettings(
        origin: url, issuer: issuer,
        client: .init(id: ConsoleFixture.clientID, secret: ConsoleFixture.clientSecret),
        administrators: [try #require(AdministratorRule.entry(ConsoleFixture.administrator))])
    settings.idleMax = idleMax
    settings.clients = ClientAddress(proxyCount: proxyCount)
    let console = Console(
        settings, database: database, brokers: ConsoleBrokers(address: brokers), board: fixture.board, logger: logger,
        now: now)
    let (started, announce) = AsyncStream.makeStream(of: Int.self)
    let runtime = ComponentEnvironment(
        logger: logger, health: Health(stallMax: .seconds(60)), eventLoops: MultiThreadedEventLoopGroup.singleton)
    let parts =
        [
            Component.http("identity", host: "127.0.0.1", port: identityPort, started: { announce.yield($0) }) {
                provider.addRoutes(to: $0)
            }
        ] + console.components(host: "127.0.0.1", port: port, started: { announce.yield($0) })
    let group = ServiceGroup(services: parts.map { $0.make(runtime) }, logger: logger)
    let running = Task { try await group.run() }
    var startedCount = 0
    for await _ in started {
        startedCount += 1
        if startedCount == 2 { break }
    }
    while exists, !console.isDatabaseOpen { try await Task.sleep(for: .milliseconds(5)) }
    let outcome: Result<Void, any Error>
    do { outcome = .success(try await body(fixture)) } catch { outcome = .failure(error) }
    fixture.client.shutDown()
    await group.triggerGracefulShutdown()
    _ = try? await running.value
    console.close()
    try outcome.get()
}
