import ArgumentParser
import DeviceClient
import Essentials
import FoundationEssentials
import Glibc
import LocalCluster
import Model

/// Idle live devices on one gateway: memory, and the time to notify all of them of one change.
struct BenchConnections: BenchScenario {
    static let configuration = CommandConfiguration(
        commandName: "connections", abstract: "Measure idle live devices: memory, and time to notify all.")

    @OptionGroup var options: BenchOptions

    @Option(help: "Number of live devices, all of one person.") var count = 10_000

    func validate() throws { try BenchOptions.check(count, in: 2...60_000, "--count") }

    static let targets = [
        BenchTarget(name: "memory of a connection", figure: "gateway's memory", limit: .atMost(24))
    ]

    /// Time until memory is stable.
    private static let idleTime = Duration.seconds(3)

    var installation: BenchInstallation.Configuration { .devices(count) }

    func setUp(_ installation: BenchInstallation) {}

    func measure(
        _ fixture: Void, on installation: BenchInstallation, _ report: inout BenchReport
    ) async throws {
        try await installation.restart(.gateway)
        var sockets = BenchSockets(port: try installation.gatewayPort)
        let sync = Self.request(
            "/v1/sync", GatewayClient.firstSyncBody(isLive: true), token: installation.tokens[0])
        // The first device makes the gateway fetch keys and open what all devices share.
        try sockets.open(1, request: sync, until: "\"checkpoint\"")
        try await Task.sleep(for: Self.idleTime)

        let before = installation.memory(of: .gateway, "VmRSS")
        let start = ContinuousClock.now
        try sockets.open(count, request: sync, until: "\"checkpoint\"")
        let opened = ContinuousClock.now - start
        try await Task.sleep(for: Self.idleTime)
        let idle = installation.memory(of: .gateway, "VmRSS")
        report.add("gateway's memory", "kB/connection", (idle - before) / Double(count - 1))
        report.add("devices connected", "devices/s", Double(count - 1) / opened.inSeconds)

        let (id, body) = try Self.mutation(in: RealmPath.user(installation.people[0].email))
        let sent = ContinuousClock.now
        let sender = try sockets.send(Self.request("/v1/mutations", body, token: installation.tokens[0]))
        defer { close(sender) }
        try sockets.waitForAll(id.text)
        report.add("all devices notified", "ms", (ContinuousClock.now - sent).inSeconds * 1_000)
        let notified = installation.memory(of: .gateway, "VmRSS")
        report.add("gateway's memory afterwards", "kB/connection", (notified - before) / Double(count - 1))
    }

    /// A request with its head.
    static func request(_ path: String, _ body: [UInt8], token: String) -> [UInt8] {
        let head = [
            "POST \(path) HTTP/1.1", "Host: 127.0.0.1", "Authorization: Bearer \(token)",
            "Content-Type: application/json", "Content-Length: \(body.count)", "", "",
        ]
        return Array(head.joined(separator: "\r\n").utf8) + body
    }

    /// The request body of a new device's first mutation.
    static func mutation(in realm: RealmPath) throws -> (id: UUID, body: [UInt8]) {
        let id = UUID()
        var device = DeviceState(clientID: UUID())
        let fields = Array(#"{"text":"A change"}"#.utf8)
        _ = try device.enqueue(Mutation(operation: .put, kind: .timeEntry, id: id, fields: fields), in: realm)
        return (id, device.nextRequest()?.body ?? [])
    }
}
