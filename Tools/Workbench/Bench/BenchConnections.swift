import ArgumentParser
import DeviceClient
import Essentials
import Foundation
import Glibc
import LocalCluster
import Model

/// Live devices that have nothing to do, and one change that all of them are told.
struct BenchConnections: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "connections",
        abstract: "Idle live devices on one gateway: memory of each, and the time to tell all of one change.")

    @OptionGroup var options: BenchClusterOptions

    @Option(help: "Live devices, all of one person.")
    var count = 10_000

    private static let restFor = Duration.seconds(3)
    /// Open files beside the devices'.
    private static let filesBeside = 1_000

    func run() async throws {
        try BenchSockets.allowFiles(count + Self.filesBeside)
        var figures = BenchFigures()
        let variables = [
            "FIELDPOST_HTTP_CONNECTIONS_MAX": "\(count + Self.filesBeside)", "FIELDPOST_SYNC_LAG_MAX": "600s",
        ]
        let person = BenchCluster.person("u0@bench.example")
        try await BenchCluster.with(services: [.gateway], variables: [.gateway: variables], people: [person]) { bench in
            for round in 1...options.rounds {
                print("round \(round) of \(options.rounds)")
                try await measure(bench, &figures)
            }
        }
        print(figures.table(title: "connections, medians of \(options.rounds) rounds, on \(BenchCluster.place)"))
        print(
            BenchFigures.ratio("kB per connection", figures.median("gateway's memory"), aim: 20, isAtMost: true))
    }

    private func measure(_ bench: BenchCluster, _ figures: inout BenchFigures) async throws {
        _ = await bench.cluster.terminate(.gateway, within: .seconds(30))
        try bench.cluster.start(.gateway)
        try await bench.cluster.waitUntilReady(.gateway)
        guard let port = URL(string: bench.cluster.gatewayURL)?.port else { return }
        // A first device has the gateway fetch keys and open what all share.
        var sockets = BenchSockets(port: port)
        let sync = request("/v1/sync", GatewayClient.firstSyncBody(isLive: true), bench)
        try sockets.open(1, request: { _ in sync }, until: "\"checkpoint\"")
        try await Task.sleep(for: Self.restFor)

        let before = bench.memory(of: .gateway, "VmRSS")
        let start = ContinuousClock.now
        try sockets.open(count, request: { _ in sync }, until: "\"checkpoint\"")
        let opened = ContinuousClock.now - start
        try await Task.sleep(for: Self.restFor)
        let after = bench.memory(of: .gateway, "VmRSS")
        figures.add("gateway's memory", "kB per connection", (after - before) / Double(count - 1))
        figures.add("devices connected", "devices/s", Double(count - 1) / opened.inSeconds)

        let id = UUID()
        let mutation = try DeviceState.body(of: id, realm: RealmPath.user(bench.people[0].email))
        let sent = ContinuousClock.now
        let sender = try sockets.send(request("/v1/mutations", mutation, bench))
        try sockets.waitForAll(id.text)
        figures.add("all told of one change", "ms", (ContinuousClock.now - sent).inSeconds * 1_000)
        close(sender)
        let told = bench.memory(of: .gateway, "VmRSS")
        figures.add("gateway's memory after that", "kB per connection", (told - before) / Double(count - 1))
    }

    private func request(_ path: String, _ body: [UInt8], _ bench: BenchCluster) -> [UInt8] {
        let head = [
            "POST \(path) HTTP/1.1", "Host: 127.0.0.1", "Authorization: Bearer \(bench.tokens[0])",
            "Content-Type: application/json", "Content-Length: \(body.count)", "", "",
        ]
        return Array(head.joined(separator: "\r\n").utf8) + body
    }
}

extension DeviceState {
    /// The body of a request with a draft as a device's first mutation.
    fileprivate static func body(of id: UUID, realm: RealmPath) throws -> [UInt8] {
        var device = DeviceState(clientID: UUID())
        let fields = Array(#"{"text":"A change"}"#.utf8)
        _ = try device.enqueue(Mutation(operation: .put, kind: .timeEntry, id: id, fields: fields), in: realm)
        return device.nextRequest()?.body ?? []
    }
}
