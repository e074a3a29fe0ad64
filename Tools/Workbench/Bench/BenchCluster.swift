import ArgumentParser
import Foundation
import HTTPClient
import LocalCluster
import Model
import ObjectStore
import Postgres

/// What a benchmark of whole services is told: it starts everything by itself.
struct BenchClusterOptions: ParsableArguments {
    @Option(help: "How often each is measured.")
    var rounds = 5

    func validate() throws {
        guard (1...100).contains(rounds) else { throw ValidationError("--rounds is 1…100, not \(rounds)") }
    }
}

/// The real executables with a PostgreSQL and a sandbox of their own, and an environment with people.
struct BenchCluster: Sendable {
    let cluster: LocalCluster
    let client: Client
    let pool: Pool
    let people: [Organisation.Person]
    let environment: EnvironmentID
    /// One for each of the people.
    let tokens: [String]
    let gateway: GatewayClient
    let sap: SandboxSAP
    private let setup: DemoSetup

    /// What the figures were measured on.
    static let place =
        "librdkafka's mock cluster (the sandbox broker, a process of its own) and a PostgreSQL with fsync"

    private static let environmentName = "bench"
    private static let realmsMax = Duration.seconds(120)

    /// - Parameters:
    ///   - services: Those that run.
    ///   - variables: Their settings.
    ///   - arguments: Those of stand-ins.
    ///   - people: Those who may come in.
    init(
        services: [LocalCluster.Part] = LocalCluster.Part.wayOfAnEntry,
        variables: [LocalCluster.Part: [String: String]] = [:], arguments: [LocalCluster.Part: [String]] = [:],
        people: [Organisation.Person]
    ) async throws {
        var options = LocalCluster.Options()
        options.services = services
        options.variables = variables
        options.arguments = arguments
        options.database = [
            "fsync": "on", "shared_buffers": "512MB", "max_wal_size": "4GB", "track_wal_io_timing": "on",
        ]
        let cluster = try await LocalCluster("bench", options)
        let client = Client()
        let pool = try Pool(cluster.conninfo, size: 2)
        let identity = IdentitySandbox(client: client, url: cluster.identityURL)
        sap = SandboxSAP(client: client, url: cluster.sapURL)
        setup = DemoSetup(
            pool: pool, environmentName: Self.environmentName, identity: identity, backend: sap)
        let added = try await setup.addEnvironment(people)
        let tokens = try await DeviceTokens(identity, environment: Self.environmentName, issuer: added.issuer)
        environment = added.id
        self.tokens = try await tokens.tokens(for: people)
        (self.cluster, self.client, self.pool, self.people) = (cluster, client, pool, people)
        gateway = GatewayClient(client: client, url: cluster.gatewayURL)
        // The gateway reads its environments from time to time.
        for part in services where part == .gateway {
            _ = await cluster.terminate(.gateway, within: .seconds(10))
            try cluster.start(part)
            try await cluster.waitUntilReady(part)
        }
    }

    func stop() async {
        pool.stop()
        client.shutDown()
        await cluster.stop()
    }

    /// Runs `body` on a cluster that ends with it.
    static func with(
        services: [LocalCluster.Part] = LocalCluster.Part.wayOfAnEntry,
        variables: [LocalCluster.Part: [String: String]] = [:], arguments: [LocalCluster.Part: [String]] = [:],
        people: [Organisation.Person], _ body: (BenchCluster) async throws -> Void
    ) async throws {
        // All devices of a benchmark have one network address.
        let variables = [.gateway, .onboarding, .onboarding.second].reduce(into: variables) {
            $0[$1, default: [:]]["FIELDPOST_HTTP_CONNECTIONS_NETWORK_MAX"] = "0"
        }
        let bench = try await BenchCluster(
            services: services, variables: variables, arguments: arguments, people: people)
        do { try await body(bench) } catch {
            await bench.stop()
            throw error
        }
        await bench.stop()
    }

    /// Somebody without back end, for the gateway alone.
    static func person(_ email: String) -> Organisation.Person {
        Organisation.Person(
            id: email, name: email, email: email, active: nil, personWorkAgreementExternalId: "1",
            companyCode: "1010", businessPartnerUuid: StableID.uuid("person", email))
    }

    /// Has the initializer fill the realms of all people of an organisation.
    func fillRealms(of organisation: Organisation) async throws {
        try await sap.load(organisation)
        try await setup.invite(people, to: environment)
        let deadline = ContinuousClock.now + Self.realmsMax
        while true {
            let count = try await setup.initializedCount(of: people, in: environment)
            if count == people.count { return }
            guard ContinuousClock.now < deadline else {
                throw BenchPlace.Missing(description: "\(count) of \(people.count) realms were initialized in time")
            }
            try await Task.sleep(for: .milliseconds(100))
        }
    }

    /// Waits until the relay has published all that was written so far.
    func waitUntilRelayed(within: Duration) async throws {
        let deadline = ContinuousClock.now + within
        let target = try await pool.run { connection in
            try connection.run("SELECT max(position) FROM store.change")[0].decode(Int64.self)
        }
        while try await pool.run({ connection in
            let rows = try connection.run("SELECT coalesce(min(position), 0) FROM realm.relay")
            return try rows[0].decode(Int64.self) < target
        }) {
            guard ContinuousClock.now < deadline else {
                throw BenchPlace.Missing(description: "the relay has not published all within \(within)")
            }
            try await Task.sleep(for: .milliseconds(50))
        }
    }

    /// Processor time of a part so far, in seconds; PostgreSQL's with all its processes.
    func processorTime(of part: LocalCluster.Part) -> Double {
        cluster.process(part).map { CPUTime.ofFamily($0.id) } ?? 0
    }

    /// What a process holds, in kB, by the name that a file of `/proc/<pid>` has for it.
    func memory(of part: LocalCluster.Part, _ name: String, in file: String = "status") -> Double {
        cluster.process(part).flatMap { ProcessMemory.kilobytes(name, of: $0.id, in: file) } ?? .nan
    }
}
