import Foundation
import HTTPClient
import LocalCluster
import Model
import Postgres

/// A cluster with an environment whose people have tokens.
struct BenchInstallation: Sendable {
    struct Configuration: Sendable {
        var services: [LocalCluster.Part] = []
        var variables: [LocalCluster.Part: [String: String]] = [:]
        /// Topics of the broker in addition to the catalogue's, with their partitions.
        var topics: [String: Int] = [:]
        var brokerRoundTrip = 0
        /// Open files that this process and its children need.
        var fileCount: Int?
        /// Whether the back end is e-conomic instead of SAP.
        var hasEconomic = false
        /// The people, and what they can book on; their realms are filled.
        var organisation: Organisation?
        /// Number of people without an organisation.
        var peopleCount = 1

        /// A gateway with live devices.
        static func devices(_ count: Int) -> Configuration {
            let fileCount = count + otherFileCount
            return Configuration(
                services: [.gateway],
                variables: [
                    .gateway: ["FIELDPOST_HTTP_CONNECTIONS_MAX": "\(fileCount)", "FIELDPOST_SYNC_LAG_MAX": "600s"]
                ], fileCount: fileCount)
        }

        /// File descriptors in addition to the devices'.
        private static let otherFileCount = 1_000
    }

    static let description =
        "librdkafka's mock cluster (the sandbox broker, a process of its own) and a PostgreSQL with fsync"

    let stage: ScenarioStage
    let people: [Organisation.Person]
    let environment: EnvironmentID
    /// One per person.
    let tokens: [String]

    var cluster: LocalCluster { stage.cluster }
    var client: Client { stage.client }
    var pool: Pool { stage.pool }
    var gateway: GatewayClient { stage.gateway }
    var sap: SandboxSAP { stage.sap }
    var economic: SandboxEconomic { stage.economic }

    var gatewayPort: Int {
        get throws {
            guard let port = URL(string: cluster.gatewayURL)?.port else {
                throw ClusterFailure("\(cluster.gatewayURL) has no port")
            }
            return port
        }
    }

    static let environmentName = "bench"
    private static let realmsMax = Duration.seconds(120)

    /// Runs `body` on a cluster that is stopped afterwards.
    static func with<Success>(
        _ configuration: Configuration, _ body: (BenchInstallation) async throws -> Success
    ) async throws -> Success {
        if let count = configuration.fileCount { try raiseFileLimit(to: count) }
        return try await ScenarioStage.with("bench", options(configuration)) { stage in
            try await body(BenchInstallation(stage, configuration))
        }
    }

    /// Raises the limit of open files for this process and its children.
    private static func raiseFileLimit(to count: Int) throws {
        var limit = rlimit()
        unsafe getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        if limit.rlim_cur >= rlim_t(count) { return }
        limit.rlim_cur = rlim_t(count)
        limit.rlim_max = max(limit.rlim_max, limit.rlim_cur)
        guard unsafe setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else {
            throw ClusterFailure("cannot raise the limit of open files to \(count) (see ulimit -n)")
        }
    }

    private static func options(_ configuration: Configuration) -> LocalCluster.Options {
        var options = LocalCluster.Options()
        options.services = configuration.services
        if configuration.hasEconomic { options.emulators = [.broker, .identity, .economic] }
        options.variables = configuration.variables
        // All devices of a benchmark have one network address.
        options.variables[.gateway, default: [:]]["FIELDPOST_HTTP_CONNECTIONS_NETWORK_MAX"] = "0"
        options.arguments[.broker] =
            ["--round-trip", "\(configuration.brokerRoundTrip)"]
            + configuration.topics.flatMap { ["--topic", "\($0.key):\($0.value)"] }
        options.database = [
            "fsync": "on", "shared_buffers": "512MB", "max_wal_size": "4GB", "track_wal_io_timing": "on",
        ]
        return options
    }

    private init(_ stage: ScenarioStage, _ configuration: Configuration) async throws {
        let backend: any DemoBackend = configuration.hasEconomic ? stage.economic : stage.sap
        let setup = stage.setup(Self.environmentName, backend: backend)
        let people =
            configuration.organisation?.people
            ?? (0..<configuration.peopleCount).map { Organisation.Person("u\($0)@bench.example") }
        let added = try await setup.addEnvironment(people)
        tokens = try await DeviceTokens(stage.identity, environment: Self.environmentName, issuer: added.issuer)
            .tokens(for: people)
        (self.stage, self.people, environment) = (stage, people, added.id)
        // The gateway loads environments at its start, and periodically.
        if configuration.services.contains(.gateway) { try await restart(.gateway) }
        guard let organisation = configuration.organisation else { return }
        try await backend.load(organisation)
        try await setup.fillRealms(of: people, in: environment, within: Self.realmsMax)
    }

    // MARK: Processes

    /// Stops a service and starts it again.
    func restart(_ part: LocalCluster.Part) async throws {
        try await stop(part)
        try cluster.start(part)
        try await cluster.waitUntilReady(part)
    }

    func stop(_ part: LocalCluster.Part) async throws {
        guard await cluster.terminate(part, within: .seconds(30)) != nil else {
            throw ClusterFailure("\(part.name) does not stop within 30 s")
        }
    }

    /// Starts a service that is not one of the cluster's.
    func start(_ service: ServiceDescription, variables: [String: String] = [:]) throws -> ClusterProcess {
        let own = ["FIELDPOST_ADMIN_PORT": String(try Ports.free()), "FIELDPOST_LOG_LEVEL": "error"]
        return try cluster.startCommand(
            [], of: service.name, log: service.name, variables: own.merging(variables) { $1 })
    }

    /// Waits until the relay has published all changes so far.
    func waitUntilRelayed(within: Duration) async throws {
        let target = try await pool.number("SELECT max(position) FROM store.change")
        try await waitUntil("the relay has published all changes", within: within, interval: .milliseconds(50)) {
            try await pool.number("SELECT coalesce(min(position), 0) FROM realm.relay") >= target
        }
    }

    /// Processor time of a process and its children so far, in seconds.
    func processorTime(of part: LocalCluster.Part) -> Double {
        cluster.process(part).map { ProcessUsage.processorTime(of: $0.id) } ?? 0
    }

    /// A value of `/proc/<pid>/status`, in kB.
    func memory(of part: LocalCluster.Part, _ name: String) -> Double {
        cluster.process(part).flatMap { ProcessUsage.value(name, of: $0.id) } ?? .nan
    }

    /// Begins a new measurement of a process's peak memory, `VmHWM`.
    func resetPeakMemory(of part: LocalCluster.Part) {
        if let process = cluster.process(part) { ProcessUsage.resetPeakMemory(of: process.id) }
    }
}
