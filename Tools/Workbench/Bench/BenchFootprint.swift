import ArgumentParser
import Essentials
import Foundation
import HTTPClient
import LocalCluster

/// What each service takes when it has nothing to do, and how soon it is ready.
struct BenchFootprint: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "footprint", abstract: "Resident memory of each idle executable, and its time to ready.")

    @OptionGroup var options: BenchClusterOptions

    private static let idleFor = Duration.seconds(3)
    private static let readyMax = Duration.seconds(30)

    func run() async throws {
        var figures = BenchFigures()
        try await BenchCluster.with(
            services: LocalCluster.Part.services, people: [BenchCluster.person("u0@bench.example")]
        ) { bench in
            for round in 1...options.rounds {
                print("round \(round) of \(options.rounds)")
                for part in LocalCluster.Part.services {
                    guard await bench.cluster.terminate(part, within: .seconds(30)) != nil else {
                        throw BenchPlace.Missing(description: "\(part.name) does not stop")
                    }
                    let time = try await startedIn(part, bench)
                    figures.add("\(part.name), time to ready", "ms", time.inSeconds * 1_000)
                    try await Task.sleep(for: Self.idleFor)
                    figures.add("\(part.name), resident", "MB", bench.memory(of: part, "VmRSS") / 1_024)
                    // Pages of libraries, divided by the processes that have them.
                    let share = bench.memory(of: part, "Pss", in: "smaps_rollup") / 1_024
                    figures.add("\(part.name), its share", "MB", share)
                    figures.add("\(part.name), of it its own", "MB", bench.memory(of: part, "RssAnon") / 1_024)
                }
            }
        }
        print(figures.table(title: "footprint, medians of \(options.rounds) rounds, on \(BenchCluster.place)"))
        for part in LocalCluster.Part.services {
            let name = part.name
            print(
                BenchFigures.ratio(
                    "\(name), MB", figures.median("\(name), resident"), aim: 30, isAtMost: true))
            print(
                BenchFigures.ratio(
                    "\(name), ms to ready", figures.median("\(name), time to ready"), aim: 300, isAtMost: true))
        }
    }

    /// From the start of the process to the first 200 of `/health/ready`.
    private func startedIn(_ part: LocalCluster.Part, _ bench: BenchCluster) async throws -> Duration {
        let start = ContinuousClock.now
        try bench.cluster.start(part)
        let request = Request(bench.cluster.adminURL(part) + "/health/ready", totalMax: .seconds(1))
        while ContinuousClock.now - start < Self.readyMax {
            if let answer = try? await bench.client.send(request), answer.status == 200 {
                return ContinuousClock.now - start
            }
            try await Task.sleep(for: .milliseconds(2))
        }
        throw BenchPlace.Missing(description: "\(part.name) is not ready within \(Self.readyMax)")
    }
}
