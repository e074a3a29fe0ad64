import ArgumentParser
import DeviceClient
import Essentials
import HTTPClient
import LocalCluster
import Model
import Postgres

/// The first download of a realm, compared with `COPY` of the same rows.
struct BenchSnapshot: BenchScenario {
    static let configuration = CommandConfiguration(
        commandName: "snapshot", abstract: "Compare a device's first download with COPY.")

    @OptionGroup var options: BenchOptions

    @Option(help: "Number of objects in the realm.") var objects = 100_000

    func validate() throws { try BenchOptions.check(objects, in: 1...10_000_000, "--objects") }

    static let targets = [
        BenchTarget(name: "device / COPY", figure: "device", reference: "COPY", limit: .atLeast(0.5)),
        BenchTarget(name: "gateway's growth", figure: "gateway's peak growth", limit: .atMost(32)),
    ]

    var installation: BenchInstallation.Configuration { BenchInstallation.Configuration(services: [.gateway]) }

    /// The gateway's memory before the first download, in kB.
    func setUp(_ installation: BenchInstallation) async throws -> Double {
        let (count, environment) = (objects, installation.environment)
        try await installation.pool.run { connection in
            try BenchObjects(environment, count: count, realms: 1, on: &connection).store(on: &connection)
            try connection.runScript(
                """
                CREATE VIEW bench_rows AS
                SELECT kind, id, position, fields FROM store.object
                WHERE environment_id = \(environment.rawValue) AND kind = \(Kind.timeEntry.number) AND NOT deleted
                """)
            try connection.runScript("VACUUM store.object")
        }
        let memory = installation.memory(of: .gateway, "VmRSS")
        let received = try await receivedCount(on: installation)
        guard received == objects else {
            throw ClusterFailure("the device received \(received) of \(objects) objects")
        }
        return memory
    }

    func measure(
        _ memory: Double, on installation: BenchInstallation, _ report: inout BenchReport
    ) async throws {
        let limit = try await copy(on: installation)
        report.add("COPY", "objects/s", Double(objects) / limit.time.inSeconds)
        report.add("COPY, size of an object", "bytes", Double(limit.bytes) / Double(objects))
        let device = try await download(on: installation)
        report.add("device", "objects/s", Double(objects) / device.time.inSeconds)
        report.add("device, size of an object", "bytes", Double(device.bytes) / Double(objects))
        report.add("gateway's peak growth", "MB", (installation.memory(of: .gateway, "VmHWM") - memory) / 1_024)
    }

    private func copy(on installation: BenchInstallation) async throws -> (time: Duration, bytes: Int) {
        try await installation.pool.run { connection in
            var bytes = 0
            let start = ContinuousClock.now
            try unsafe connection.copyOut("COPY (SELECT * FROM bench_rows) TO STDOUT") { bytes += $0.count }
            return (ContinuousClock.now - start, bytes)
        }
    }

    /// Reads the response, which ends with a checkpoint.
    private func download(on installation: BenchInstallation) async throws -> (time: Duration, bytes: Int) {
        let start = ContinuousClock.now
        var bytes = 0
        var tail: [UInt8] = []
        for try await chunk in try await installation.gateway.stream(token: installation.tokens[0]) {
            bytes += chunk.count
            tail = (tail + chunk.suffix(Self.tailBytes)).suffix(Self.tailBytes)
        }
        let time = ContinuousClock.now - start
        guard String(decoding: tail, as: UTF8.self).contains("\"checkpoint\"") else {
            throw ClusterFailure("the download ended before its checkpoint")
        }
        return (time, bytes)
    }

    private static let tailBytes = 1_024

    private func receivedCount(on installation: BenchInstallation) async throws -> Int {
        var count = 0
        let lines = try await installation.gateway.sync(token: installation.tokens[0])
        for try await line in lines {
            guard case .objects(let realm, _, let list) = try SyncLine.read(line), case .user = realm.realmClass
            else { continue }
            count += list.count
        }
        return count
    }
}
