import DeviceClient
import Essentials
import Foundation
import HTTPClient
import LocalCluster
import Model
import ObjectStore
import Postgres
import ServiceRuntime
import ServiceSettings

/// Runs seeds, each in an environment of its own on one cluster.
struct ConvergeRun: Sendable {
    let seeds: [UInt64]
    let peopleCount: Int
    let stepCount: Int
    let parallelMax: Int
    let killCount: Int

    private static let settleMax = Duration.seconds(300)
    private static let freezeMax = Duration.seconds(4)
    private static let pause = Duration.milliseconds(700)

    /// The services on the way of a task.
    private static let services = [
        Services.changeRelay, Services.realmGateway, Services.taskFanOut, Services.locationFanOut,
        Services.shareFanOut,
    ].map { LocalCluster.Part($0) }

    /// - Returns: The seeds after which something differed.
    func run() async throws -> [UInt64] {
        var options = LocalCluster.Options.quick
        options.services = Self.services.flatMap { [$0, $0.second] }
        let cluster = try await LocalCluster("converge", options)
        do {
            let differing = try await run(on: cluster, options.services)
            await cluster.stop()
            return differing
        } catch {
            await cluster.tell(of: options.services)
            await cluster.stop()
            throw error
        }
    }

    private func run(on cluster: LocalCluster, _ services: [LocalCluster.Part]) async throws -> [UInt64] {
        var configuration = Client.Configuration()
        // Every device has a stream of its own open all the time, and now and then a request beside it.
        configuration.connectionsPerHostMax = max(100, peopleCount * parallelMax * 3)
        let client = Client(configuration: configuration)
        defer { client.shutDown() }
        let pool = try Pool(cluster.conninfo, size: 4)
        defer { pool.stop() }
        let killing = Task {
            let killer = Killer(
                cluster: cluster, parts: services + [.database, .broker], seed: seeds.first ?? 1, pause: Self.pause,
                freezeMax: Self.freezeMax)
            try await killer.kill(killCount * seeds.count / max(1, min(parallelMax, seeds.count)))
            // What ends by itself afterwards is started again too.
            while !Task.isCancelled {
                try killer.startWhatEnded()
                try await Task.sleep(for: .milliseconds(500))
            }
        }
        defer { killing.cancel() }
        return try await withThrowingTaskGroup(of: (UInt64, [String]).self) { group in
            var differing: [UInt64] = []
            func take(_ result: (seed: UInt64, differences: [String])?) {
                guard let result else { return }
                let count = result.differences.count
                print("seed \(result.seed): \(count == 0 ? "no differences" : "\(count) differences")")
                for line in result.differences.prefix(20) { print("  \(line)") }
                if count > 0 { differing.append(result.seed) }
            }
            for (index, seed) in seeds.enumerated() {
                if index >= parallelMax { take(try await group.next()) }
                group.addTask {
                    let course = ConvergeCourse(
                        seed: seed, peopleCount: peopleCount, stepCount: stepCount, settleMax: Self.settleMax,
                        cluster: cluster, client: client, pool: pool)
                    return (seed, try await course.run())
                }
            }
            while let result = try await group.next() { take(result) }
            if differing.isEmpty {
                try await cluster.expectConsistent()
            } else {
                await cluster.tell(of: services)
            }
            return differing
        }
    }
}
