import ArgumentParser
import DeviceClient
import Essentials
import Foundation
import Glibc
import HTTPClient
import LocalCluster
import Model
import Postgres

/// The PowerSync protocol, compared with the device API: first download, idle connections, a change to many devices.
struct BenchPowerSync: BenchScenario {
    static let configuration = CommandConfiguration(
        commandName: "powersync",
        abstract: "Compare the PowerSync protocol with the device API.",
        discussion: """
            Each run measures a first download, idle connections, and the time until all devices have one change, with \
            each protocol. For the change, half of the devices or none use the PowerSync protocol.
            """)

    @OptionGroup var options: BenchOptions

    @Option(help: "Number of objects of the first download.") var objects = 100_000
    @Option(help: "Number of idle connections.") var connections = 5_000
    @Option(help: "Number of devices that receive a change.") var devices = 1_000

    func validate() throws {
        try BenchOptions.check(objects, in: 1...10_000_000, "--objects")
        try BenchOptions.check(connections, in: 2...60_000, "--connections")
        try BenchOptions.check(devices, in: 2...60_000, "--devices")
    }

    static let targets = [
        BenchTarget(
            name: "download, PowerSync / device API", figure: "download, PowerSync", reference: "download, device API",
            limit: .atLeast(0.8)),
        BenchTarget(
            name: "memory, PowerSync / device API", figure: "memory, PowerSync", reference: "memory, device API",
            limit: .atMost(1.1)),
        BenchTarget(
            name: "change, half PowerSync / device API", figure: "change, half PowerSync",
            reference: "change, device API", limit: .atMost(1.2)),
    ]

    /// Time until memory is stable.
    private static let idleTime = Duration.seconds(3)
    /// File descriptors in addition to the devices'.
    private static let otherFileCount = 1_000
    /// Changes of one measurement.
    private static let changeCount = 5

    var installation: BenchInstallation.Configuration {
        let fileCount = max(connections, devices) + Self.otherFileCount
        return BenchInstallation.Configuration(
            services: [.gateway],
            variables: [
                .gateway: ["FIELDPOST_HTTP_CONNECTIONS_MAX": "\(fileCount)", "FIELDPOST_SYNC_LAG_MAX": "600s"]
            ], fileCount: fileCount, peopleCount: 2)
    }

    /// The first person has the objects of the download, the second one has the connections.
    func setUp(_ installation: BenchInstallation) async throws {
        let (count, environment) = (objects, installation.environment)
        try await installation.pool.run { connection in
            try BenchObjects(environment, count: count, realms: 1, on: &connection).store(on: &connection)
            try connection.runScript("VACUUM store.object")
        }
    }

    private enum API: String, CaseIterable {
        case device = "device API"
        case powerSync = "PowerSync"

        /// The end of a first download.
        var checkpoint: String { self == .device ? "\"checkpoint\"" : "\"checkpoint_complete\"" }
    }

    func measure(
        _ fixture: Void, on installation: BenchInstallation, _ report: inout BenchReport
    ) async throws {
        for api in API.allCases { try await measureDownload(api, on: installation, &report) }
        for api in API.allCases { try await measureMemory(api, on: installation, &report) }
        try await installation.restart(.gateway)
        for count in [0, devices / 2] { try measureChange(powerSyncCount: count, on: installation, &report) }
    }

    private func measureDownload(
        _ api: API, on installation: BenchInstallation, _ report: inout BenchReport
    ) async throws {
        let start = ContinuousClock.now
        let (gateway, token) = (installation.gateway, installation.tokens[0])
        let chunks =
            switch api {
            case .device: try await gateway.stream(token: token)
            case .powerSync: try await gateway.bucketChunks(token: token)
            }
        let needle = Array(api.checkpoint.utf8)
        var (bytes, tail) = (0, [UInt8]())
        for try await chunk in chunks {
            bytes += chunk.count
            // Only the last line can contain it: quotes in objects are escaped, or fields have other names.
            tail = (tail + chunk.suffix(Self.tailBytes)).suffix(Self.tailBytes)
            guard tail.contains(needle) else { continue }
            report.add("download, \(api.rawValue)", "objects/s", Double(objects) / (.now - start).inSeconds)
            report.add("object's size, \(api.rawValue)", "bytes", Double(bytes) / Double(objects))
            return
        }
        throw ClusterFailure("the download ended before its checkpoint")
    }

    private static let tailBytes = 256

    private func measureMemory(
        _ api: API, on installation: BenchInstallation, _ report: inout BenchReport
    ) async throws {
        try await installation.restart(.gateway)
        var sockets = BenchSockets(port: try installation.gatewayPort)
        let request = request(api, on: installation)
        // The first device makes the gateway fetch keys and open what all devices share.
        try sockets.open(1, request: request, until: api.checkpoint)
        try await Task.sleep(for: Self.idleTime)
        let before = installation.memory(of: .gateway, "VmRSS")
        try sockets.open(connections, request: request, until: api.checkpoint)
        try await Task.sleep(for: Self.idleTime)
        let memory = installation.memory(of: .gateway, "VmRSS") - before
        report.add("memory, \(api.rawValue)", "kB/connection", memory / Double(connections - 1))
    }

    private func measureChange(
        powerSyncCount: Int, on installation: BenchInstallation, _ report: inout BenchReport
    ) throws {
        var sockets = BenchSockets(port: try installation.gatewayPort)
        for (api, count) in [(API.powerSync, powerSyncCount), (.device, devices)] {
            try sockets.open(count, request: request(api, on: installation), until: api.checkpoint)
        }
        var total = Duration.zero
        for _ in 0..<Self.changeCount {
            let (id, body) = try BenchConnections.mutation(in: RealmPath.user(installation.people[1].email))
            let start = ContinuousClock.now
            let sender = try sockets.send(
                BenchConnections.request("/v1/mutations", body, token: installation.tokens[1]))
            defer { close(sender) }
            try sockets.waitForAll(id.text)
            total += .now - start
        }
        let name = powerSyncCount == 0 ? API.device.rawValue : "half PowerSync"
        report.add("change, \(name)", "ms", (total / Self.changeCount).inSeconds * 1_000)
    }

    private func request(_ api: API, on installation: BenchInstallation) -> [UInt8] {
        let token = installation.tokens[1]
        return switch api {
        case .device:
            BenchConnections.request("/v1/sync", GatewayClient.firstSyncBody(isLive: true), token: token)
        case .powerSync: BenchConnections.request("/sync/stream", GatewayClient.firstBucketsBody(), token: token)
        }
    }
}
