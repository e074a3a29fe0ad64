import ArgumentParser
import DeviceClient
import Essentials
import Foundation
import HTTPClient
import LocalCluster
import Model
import ObjectStore
import Postgres

/// A whole realm to one device, against `COPY` of the same rows.
struct BenchSnapshot: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "snapshot", abstract: "A realm's first download by one device, against COPY of the same rows.")

    @OptionGroup var options: BenchClusterOptions

    @Option(help: "Objects in the realm.")
    var objects = 100_000

    func run() async throws {
        var figures = BenchFigures()
        let person = BenchCluster.person("u0@bench.example")
        try await BenchCluster.with(services: [.gateway], people: [person]) { bench in
            try await store(bench)
            let before = bench.memory(of: .gateway, "VmRSS")
            // The first one is counted object by object, and warms the caches for both.
            guard try await countedDownload(bench) == objects else {
                throw BenchPlace.Missing(description: "the device did not get \(objects) objects")
            }
            for round in 1...options.rounds {
                print("round \(round) of \(options.rounds)")
                let limit = try await copy(bench)
                figures.add("COPY", "objects/s", Double(objects) / limit.time.inSeconds)
                figures.add("COPY, bytes per object", "bytes", Double(limit.bytes) / Double(objects))
                let device = try await download(bench)
                figures.add("device", "objects/s", Double(objects) / device.time.inSeconds)
                figures.add("device, bytes per object", "bytes", Double(device.bytes) / Double(objects))
                let growth = bench.memory(of: .gateway, "VmHWM") - before
                figures.add("gateway's growth so far, at its highest", "MB", growth / 1_024)
            }
        }
        print(figures.table(title: "snapshot, medians of \(options.rounds) rounds, on \(BenchCluster.place)"))
        print(
            BenchFigures.ratio("device / COPY", figures.median("device") / figures.median("COPY"), aim: 0.5))
        print(
            BenchFigures.ratio(
                "gateway's growth, MB", figures.median("gateway's growth so far, at its highest"), aim: 32,
                isAtMost: true))
    }

    private func store(_ bench: BenchCluster) async throws {
        let (count, environment, conninfo) = (objects, bench.environment, bench.cluster.conninfo)
        try await bench.pool.run { connection in
            try BenchObjects(environment, count: count, realms: 1, on: conninfo).store(on: &connection)
            try connection.runScript(
                """
                CREATE VIEW bench_rows AS
                SELECT kind, id, position, fields FROM store.object
                WHERE environment_id = \(environment.rawValue) AND kind = \(Kind.timeEntry.number) AND NOT deleted
                """)
            try connection.runScript("VACUUM store.object")
        }
    }

    private func copy(_ bench: BenchCluster) async throws -> (time: Duration, bytes: Int) {
        try await bench.pool.run { connection in
            var bytes = 0
            let start = ContinuousClock.now
            try unsafe connection.copyOut("COPY (SELECT * FROM bench_rows) TO STDOUT") { bytes += $0.count }
            return (ContinuousClock.now - start, bytes)
        }
    }

    /// Reads up to the checkpoint, which ends the answer.
    private func download(_ bench: BenchCluster) async throws -> (time: Duration, bytes: Int) {
        let start = ContinuousClock.now
        let headers = [("Authorization", "Bearer \(bench.tokens[0])"), ("Content-Type", "application/json")]
        let body = GatewayClient.firstSyncBody(isLive: false)
        let response = try await bench.client.stream(
            Request("POST", bench.cluster.gatewayURL + "/v1/sync", headers: headers, body: body),
            idleMax: .seconds(30))
        guard response.status == 200 else {
            throw BenchPlace.Missing(description: "the gateway answers \(response.status)")
        }
        var bytes = 0
        var tail: [UInt8] = []
        for try await chunk in response.body {
            bytes += chunk.count
            tail = (tail + chunk.suffix(Self.tailBytes)).suffix(Self.tailBytes)
        }
        let time = ContinuousClock.now - start
        guard String(decoding: tail, as: UTF8.self).contains("\"checkpoint\"") else {
            throw BenchPlace.Missing(description: "the download ended before its checkpoint")
        }
        return (time, bytes)
    }

    private static let tailBytes = 1_024

    private func countedDownload(_ bench: BenchCluster) async throws -> Int {
        var count = 0
        let lines = try await bench.gateway.sync(
            token: bench.tokens[0], body: GatewayClient.firstSyncBody(isLive: false))
        for try await line in lines {
            guard case .objects(let realm, _, let list) = try SyncLine.read(line), case .user = realm.realmClass
            else { continue }
            count += list.count
        }
        return count
    }
}
