import ArgumentParser
import Foundation
import LocalCluster

/// A fault of a host or of the network between hosts.
enum HostFault: String, CaseIterable, ExpressibleByArgument {
    case noFault = "none"
    case gatewayCut = "gateway-cut"
    case gatewayCannotSend = "gateway-cannot-send"
    case gatewayCannotReceive = "gateway-cannot-receive"
    case relayWithoutKafka = "relay-without-kafka"
    case relayWithoutDatabase = "relay-without-database"
    case workersWithoutDatabase = "workers-without-database"
    case workersWithoutKafka = "workers-without-kafka"
    case brokerCut = "broker-cut"
    case packetLoss = "packet-loss"
    case latency
    case gatewayFrozen = "gateway-frozen"
    case relayFrozen = "relay-frozen"
    case workersFrozen = "workers-frozen"
    case primaryFrozen = "primary-frozen"
    case primaryDiskFull = "primary-disk-full"
    case primaryLost = "primary-lost"
    case primaryLostAhead = "primary-lost-ahead"
    case primaryIsolated = "primary-isolated"
    case standbyLost = "standby-lost"
    case bouncerCut = "pgbouncer-cut"
    case clocksAhead = "clocks-ahead"
    case clocksBehind = "clocks-behind"

    /// Longer than sessions of Kafka (6 s), and leases and timeouts of PostgreSQL's sessions (11 s).
    private static let leaseMin = 15
    /// Longer than a primary's lease (20 s): Patroni promotes the standby.
    private static let promotionMin = 35

    /// Time of work that the standby does not receive.
    private static let ahead = Duration.seconds(5)

    /// Its length in seconds; 0: it does not end by itself.
    var seconds: Int {
        switch self {
        case .noFault, .primaryLost, .primaryLostAhead, .standbyLost: 0
        case .gatewayCut, .gatewayCannotSend, .gatewayCannotReceive, .relayWithoutKafka, .relayWithoutDatabase,
            .workersWithoutDatabase, .workersWithoutKafka, .gatewayFrozen, .relayFrozen, .workersFrozen, .packetLoss,
            .latency, .bouncerCut, .clocksAhead, .clocksBehind, .primaryDiskFull:
            Self.leaseMin
        case .primaryFrozen, .primaryIsolated: Self.promotionMin
        case .brokerCut: 60
        }
    }

    /// Injects the fault, waits for its length, and ends it.
    ///
    /// - Returns: The time from which devices must recover: its end, or its beginning if it does not end by itself.
    func inject(on hosts: HostStage) async throws -> ContinuousClock.Instant {
        let network = hosts.network
        let target = try await target(on: hosts)
        try await begin(on: hosts, target)
        let start = ContinuousClock.now
        if seconds == 0 { return start }
        try await Task.sleep(for: .seconds(seconds))
        for host in target where isFreeze { try network.thaw(host) }
        try network.heal()
        if self == .primaryDiskFull { try FileManager.default.removeItem(atPath: Self.filler(target[0], on: hosts)) }
        if isClock { try await hosts.setClocks(target, offset: nil) }
        return .now
    }

    private var isFreeze: Bool { [.gatewayFrozen, .relayFrozen, .workersFrozen, .primaryFrozen].contains(self) }
    private var isClock: Bool { [.clocksAhead, .clocksBehind].contains(self) }

    /// The hosts that have the fault.
    private func target(on hosts: HostStage) async throws -> [String] {
        switch self {
        case .noFault, .packetLoss: []
        case .gatewayCut, .gatewayCannotSend, .gatewayCannotReceive, .gatewayFrozen: [HostStage.gateways[0].name]
        case .relayWithoutKafka, .relayWithoutDatabase, .relayFrozen: [try await hosts.leaderRelay()]
        case .workersWithoutDatabase, .workersWithoutKafka, .workersFrozen: hosts.workerHosts
        case .brokerCut: [LocalCluster.Part.broker.name]
        case .latency: hosts.serviceHosts
        case .primaryFrozen, .primaryDiskFull, .primaryLost, .primaryLostAhead, .primaryIsolated:
            [try await hosts.primary()]
        case .standbyLost: Self.others(than: try await hosts.primary())
        case .bouncerCut: ["pgbouncer"]
        case .clocksAhead, .clocksBehind:
            // Both relays: a restart of the leader makes the other one the leader.
            [HostStage.gateways[0].name] + HostStage.relays.map(\.name) + hosts.workerHosts
        }
    }

    private static func others(than server: String) -> [String] { DatabaseHosts.servers.filter { $0 != server } }

    private func begin(on hosts: HostStage, _ target: [String]) async throws {
        let network = hosts.network
        let databases = DatabaseHosts.servers + ["pgbouncer"]
        func separate(from peers: [String]) throws {
            for peer in peers { try network.separate(target, from: peer) }
        }
        switch self {
        case .noFault: break
        case .gatewayCut, .brokerCut, .bouncerCut: try network.separate(target)
        case .gatewayCannotSend: try network.cut(databases.map { .from(target[0], to: $0) })
        case .gatewayCannotReceive: try network.cut(databases.map { .from($0, to: target[0]) })
        case .relayWithoutKafka, .workersWithoutKafka: try separate(from: [LocalCluster.Part.broker.name])
        case .relayWithoutDatabase, .workersWithoutDatabase: try separate(from: databases)
        case .packetLoss: try network.lose(percent: 10)
        case .latency: try network.delay(.milliseconds(200), between: target, and: databases)
        case .gatewayFrozen, .relayFrozen, .workersFrozen, .primaryFrozen:
            for host in target { try network.freeze(host) }
        case .primaryDiskFull: try Self.fill(Self.filler(target[0], on: hosts))
        case .primaryLost, .standbyLost: try network.kill9(target[0])
        case .primaryLostAhead:
            try await hosts.database.setSynchronous(false)
            try separate(from: Self.others(than: target[0]))
            try await Task.sleep(for: Self.ahead)
            try network.kill9(target[0])
            try network.heal()
        case .primaryIsolated: try separate(from: Self.others(than: target[0]) + ["etcd"])
        case .clocksAhead: try await hosts.setClocks(target, offset: .seconds(300))
        case .clocksBehind: try await hosts.setClocks(target, offset: .seconds(-300))
        }
    }

    private static func filler(_ host: String, on hosts: HostStage) -> String {
        hosts.database.disk(of: host) + "/filler"
    }

    /// Writes zeros until the disk is full.
    private static func fill(_ path: String) throws {
        try runToEnd("sh", ["-c", "dd if=/dev/zero of=\"$0\" bs=64k 2>/dev/null || true", path])
    }
}
