import HTTPClient
import LocalCluster
import Model
import ObjectStore
import Postgres
import Synchronization

/// The positions that failovers lost, by environment.
private final class HostLosses: Sendable {
    private let ranges = Mutex<[EnvironmentID: Range<Int64>]>([:])

    /// - Parameters:
    ///   - before: The newest positions that the new primary has.
    ///   - after: The first positions of the new generations.
    func add(from before: [EnvironmentID: Int64], to after: [EnvironmentID: Int64]) {
        ranges.withLock { ranges in
            for (environment, position) in before {
                if let end = after[environment], end > position { ranges[environment] = position + 1..<end }
            }
        }
    }

    func positions(of environment: EnvironmentID) -> Range<Int64> { ranges.withLock { $0[environment] ?? 0..<0 } }
}

/// An installation with each process on a host of its own, its operators, and devices at both gateways.
struct HostStage: Sendable {
    let stage: ScenarioStage
    let network: HostNetwork
    let database: DatabaseHosts
    let watch: DeviceWatch
    private let losses = HostLosses()

    static let gateways: [LocalCluster.Part] = [.gateway, .gateway.second]
    static let relays: [LocalCluster.Part] = [.relay, .relay.second]
    private static let workers: [LocalCluster.Part] = [.taskFanOut, .locationFanOut, .shareFanOut]
    private static let workerCount = 3

    private var cluster: LocalCluster { stage.cluster }
    var gateways: [GatewayClient] { Self.clients(of: stage) }

    private static func clients(of stage: ScenarioStage) -> [GatewayClient] {
        gateways.map { GatewayClient(client: stage.client, url: stage.cluster.home.url($0)) }
    }

    // MARK: Set-up

    /// Starts all hosts for `body`, with operators who restart services that end, and accept a new primary.
    static func run<Success: Sendable>(_ body: @escaping @Sendable (HostStage) async throws -> Success) async throws
        -> Success
    {
        let services = gateways + relays + workers.flatMap { worker in (1...workerCount).map(worker.instance) }
        var options = LocalCluster.Options.quick
        options.services = services
        options.emulators = [.broker, .identity]
        let folder = try ClusterFolder("hosts")
        let network = try HostNetwork((options.emulators + services).map(\.name) + DatabaseHosts.names)
        var home = ClusterHome(
            folder: folder,
            ports: Dictionary(uniqueKeysWithValues: (gateways + options.emulators + [.onboarding]).map { ($0, 8_080) }),
            adminPorts: Dictionary(uniqueKeysWithValues: services.map { ($0, 9_090) }), consolePort: 0)
        home.network = network
        let database = try await DatabaseHosts(on: network, in: folder)
        for part in services where part.name.hasSuffix("-2") {
            options.variables[part, default: [:]]["FIELDPOST_DATABASE_URL"] = database.pooledConninfo
        }
        let cluster = LocalCluster(home, nil, conninfo: database.conninfo, options)
        try await cluster.runCommand(["migrate", "--schema", options.schemaFolder])
        try await cluster.startAll(options.emulators + services)
        var configuration = Client.Configuration()
        configuration.connectionsPerHostMax = 100
        let client = Client(configuration: configuration)
        defer { client.shutDown() }
        let pool = try Pool(cluster.conninfo, size: 4)
        defer { pool.stop() }
        let stage = ScenarioStage(cluster: cluster, client: client, pool: pool, console: ScenarioConsole())
        let watch = try await DeviceWatch.adding(stage.setup(DeviceWatch.environment), gateways: clients(of: stage))
        let hosts = HostStage(stage: stage, network: network, database: database, watch: watch)
        do {
            return try await hosts.whileOperated { try await body(hosts) }
        } catch {
            await hosts.printDiagnostics()
            throw error
        }
    }

    /// Prints the state of all hosts.
    func printDiagnostics() async {
        await database.printDiagnostics()
        await cluster.printDiagnostics()
    }

    private func whileOperated<Success: Sendable>(_ body: @escaping @Sendable () async throws -> Success) async throws
        -> Success
    {
        try await withThrowingTaskGroup(of: Success?.self) { group in
            group.addTask {
                try await watch.run()
                return nil
            }
            group.addTask {
                try await operate()
                return nil
            }
            group.addTask { try await body() }
            defer { group.cancelAll() }
            while let result = try await group.next() {
                if let result { return result }
            }
            throw CancellationError()
        }
    }

    /// Restarts services that have ended, and accepts a new primary as operators do: with `fieldpost restore`, and with
    /// `--nothing-lost` if replication is synchronous.
    private func operate() async throws {
        var accepted = await database.primary()
        var before: [EnvironmentID: Int64]?
        while true {
            _ = cluster.supervisor.restartWhatEnded()
            if let primary = await database.primary(), primary.timeline != accepted?.timeline {
                stage.console.log("\(primary.host) is the primary, with timeline \(primary.timeline)")
                // PostgreSQL may become unavailable again.
                if (try? await accept(&before)) != nil { accepted = primary }
            }
            try await Task.sleep(for: .milliseconds(500))
        }
    }

    /// - Parameter before: The positions before the first attempt; `nil` after one succeeded.
    private func accept(_ before: inout [EnvironmentID: Int64]?) async throws {
        guard !database.isSynchronous else {
            try await cluster.runCommand(["restore", "--nothing-lost"], within: .seconds(30))
            return
        }
        let start: [EnvironmentID: Int64]
        if let before { start = before } else { start = try await positions() }
        before = start
        // An attempt may have failed after its restore.
        let isAccepted = try await stage.pool.run { try $0.run(Lineage.isUnchanged)[0].decode(Bool.self) }
        if !isAccepted { try await cluster.runCommand(["restore"], within: .seconds(30)) }
        // The restore terminates all other sessions.
        let end = try await retrying(until: .now + .seconds(30)) { try await positions() }
        losses.add(from: start, to: end)
        before = nil
    }

    private func positions() async throws -> [EnvironmentID: Int64] {
        try await stage.pool.run { connection in
            let rows = try connection.run("SELECT id, position FROM realm.environment").decode(Int32.self, Int64.self)
            return Dictionary(uniqueKeysWithValues: rows.map { (EnvironmentID(rawValue: $0), $1) })
        }
    }

    /// The positions of an environment that a failover lost.
    func lostPositions(of environment: EnvironmentID) -> Range<Int64> { losses.positions(of: environment) }

    // MARK: Parts

    /// The first instance of each worker.
    var workerHosts: [String] { Self.workers.map(\.name) }
    /// All hosts of services.
    var serviceHosts: [String] { cluster.services.map(\.name) }

    func primary() async throws -> String {
        guard let primary = await database.primary() else { throw ClusterFailure("there is no primary") }
        return primary.host
    }

    /// The relay that publishes.
    func leaderRelay() async throws -> String {
        for relay in Self.relays where await isLeader(relay) { return relay.name }
        throw ClusterFailure("no relay is the leader")
    }

    private func isLeader(_ relay: LocalCluster.Part) async -> Bool {
        await stage.metrics(of: relay)?.contains { $0.hasPrefix("fieldpost_leader") && $0.hasSuffix(" 1") } ?? false
    }

    /// Restarts services with an offset of their hosts' clocks.
    func setClocks(_ hosts: [String], offset: Duration?) async throws {
        for part in cluster.services where hosts.contains(part.name) {
            try network.setClock(part.name, offset: offset)
            try await cluster.restart(part)
        }
    }
}
