import Access
import ArgumentParser
import Crypto
import DeviceClient
import Essentials
import Foundation
import HTTPClient
import LocalCluster
import Model
import ObjectStore
import Postgres
import Tenants

/// Many environments with live devices on one gateway, a few of which are busy.
struct BenchEnvironments: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "environments",
        abstract: "A change's way to a live device of a busy environment, beside many others on one gateway.",
        discussion: """
            A service writes; the time begins with its transaction and ends with the line on the device. It is \
            measured in turn with the busy environments alone.
            """)

    @OptionGroup var options: BenchClusterOptions

    @Option(help: "Environments with a live device.")
    var count = 1_000
    @Option(help: "Those of them that are busy.")
    var busy = 10
    @Option(help: "Changes per second of all of them.")
    var rate = 200
    @Option(help: "Seconds of a measurement.")
    var seconds = 5

    /// An environment, and the key of an integration that is its device.
    private struct Place: Sendable {
        let environment: EnvironmentID
        let realm: Int32
        let key: String
    }

    /// Since then the others count as idle.
    private static let restFor = Duration.seconds(4)
    private static let filesBeside = 1_000

    func run() async throws {
        try BenchSockets.allowFiles(count + Self.filesBeside)
        var figures = BenchFigures()
        let person = BenchCluster.person("u0@bench.example")
        try await BenchCluster.with(services: [.gateway], people: [person]) { bench in
            let places = try await addEnvironments(bench)
            for round in 1...options.rounds {
                print("round \(round) of \(options.rounds)")
                for some in [Array(places[..<busy]), places] {
                    let percentiles = Percentiles(try await measure(bench, some))
                    for percent in [50, 99] {
                        figures.add(
                            name(some.count, percent), "ms", (percentiles[percent]?.inSeconds ?? .nan) * 1_000)
                    }
                }
            }
        }
        print(figures.table(title: "environments, medians of \(options.rounds) rounds, on \(BenchCluster.place)"))
        for percent in [50, 99] {
            let ratio = figures.median(name(count, percent)) / figures.median(name(busy, percent))
            print(BenchFigures.ratio("p\(percent) against the busy alone", ratio, aim: 1.5, isAtMost: true))
        }
    }

    private func name(_ count: Int, _ percent: Int) -> String { "\(count) environments, p\(percent)" }

    private func addEnvironments(_ bench: BenchCluster) async throws -> [Place] {
        let keys = (0..<count).map { _ in IntegrationKey.make() }
        return try await bench.pool.run { connection in
            var places: [Place] = []
            var directory = RealmDirectory()
            for (number, key) in keys.enumerated() {
                let environment = try EnvironmentStore.make("busy-\(number)", on: &connection)
                let hash = Bytea(Array(SHA256.hash(data: Array(key.utf8))))
                _ = try IntegrationStore.add("device", keyHash: hash, in: environment, on: &connection)
                guard let realm = try directory.id(of: .users, in: environment, create: true, on: &connection) else {
                    continue
                }
                places.append(Place(environment: environment, realm: realm, key: key))
            }
            return places
        }
    }

    /// The times of changes of the busy environments while devices of all these are live.
    private func measure(_ bench: BenchCluster, _ places: [Place]) async throws -> [Duration] {
        _ = await bench.cluster.terminate(.gateway, within: .seconds(30))
        try bench.cluster.start(.gateway)
        try await bench.cluster.waitUntilReady(.gateway)
        guard let port = URL(string: bench.cluster.gatewayURL)?.port else { return [] }
        let idle = places[busy...].map { Self.request($0.key) }
        var sockets = BenchSockets(port: port)
        try sockets.open(idle.count, request: { idle[$0] }, until: "\"checkpoint\"")
        let clock = BenchClock()
        let (opened, open) = AsyncStream.makeStream(of: Void.self)
        let followers = places[..<busy].map { place in
            Task { try await Self.follow(bench, place, clock) { open.yield() } }
        }
        defer { for follower in followers { follower.cancel() } }
        var openCount = 0
        for await _ in opened {
            openCount += 1
            if openCount == busy { break }
        }
        try await Task.sleep(for: Self.restFor)
        try await write(bench, places[..<busy], clock)
        try await clock.settled(within: .seconds(30))
        return clock.take()
    }

    private static let body = Array("{\"live\":true,\"realms\":{\"/users\":null}}".utf8)

    private static func request(_ key: String) -> [UInt8] {
        let head = [
            "POST /v1/sync HTTP/1.1", "Host: 127.0.0.1", "Authorization: Bearer \(key)",
            "Content-Type: application/json", "Content-Length: \(body.count)", "", "",
        ]
        return Array(head.joined(separator: "\r\n").utf8) + body
    }

    /// Writes at a steady pace, one environment after the other, as a service does that is not the gateway.
    private func write(_ bench: BenchCluster, _ places: ArraySlice<Place>, _ clock: BenchClock) async throws {
        let start = ContinuousClock.now
        for number in 0..<rate * seconds {
            try await Task.sleep(until: start + .seconds(Double(number) / Double(rate)))
            let place = places[number % places.count]
            let id = UUID()
            clock.sent(id, at: .now)
            try await bench.pool.run { connection in
                var batch = WriteBatch(environment: place.environment)
                batch.put(
                    ObjectKey(realm: place.realm, kind: .realms, id: id),
                    try CanonicalJSON("{\"userId\":\"\(number)\"}"),
                    decision: 0)
                _ = try batch.commit(on: &connection)
            }
        }
    }

    private static func follow(
        _ bench: BenchCluster, _ place: Place, _ clock: BenchClock, opened: () -> Void
    ) async throws {
        let request = Request(
            "POST", bench.cluster.gatewayURL + "/v1/sync",
            headers: [("Authorization", "Bearer \(place.key)"), ("Content-Type", "application/json")], body: body)
        let response = try await bench.client.stream(request, idleMax: GatewayClient.idleMax)
        for try await line in response.body.lines(bytesMax: GatewayClient.lineBytesMax) {
            let now = ContinuousClock.now
            switch try SyncLine.read(line) {
            case .checkpoint: opened()
            case .objects(_, _, let changes): for change in changes { clock.arrived(change.id.id, at: now) }
            case .open, .closed, .keepalive, nil: break
            }
        }
    }
}
