import Essentials
import FoundationEssentials
import LocalCluster

/// What a company in SAP costs, counted by the stand-in.
extension BenchPoll {
    private static let intervalSeconds = 300.0
    private static let fullIntervalSeconds = 86_400.0

    func list() async throws {
        let bench = try await BenchListing(people: people, entries: entries)
        do { try await list(bench) } catch {
            await bench.stop()
            throw error
        }
        await bench.stop()
    }

    private func list(_ bench: BenchListing) async throws {
        var figures = BenchFigures()
        print("everybody is compared in full")
        try await bench.initialise()
        let full = try await bench.run(isFull: true)
        figures.add("full comparison", "s", full.time.inSeconds)
        figures.add("requests of a full comparison", "requests", Double(full.requestCount))
        print("the first listing of a worker that has just started")
        let first = try await bench.run(isFull: false)
        figures.add("first listing", "s", first.time.inSeconds)
        figures.add("requests of the first listing", "requests", Double(first.requestCount))
        for round in 1...rounds {
            print("round \(round) of \(rounds)")
            let change = try await bench.changeOne(round)
            var runCount = 0
            repeat {
                runCount += 1
                let run = try await bench.run(isFull: false)
                figures.add("listing", "s", run.time.inSeconds)
                figures.add("requests of a listing", "requests", Double(run.requestCount))
            } while try await !bench.isSeen(change) && runCount < rounds
            figures.add("a changed record is seen after", "runs", Double(runCount))
        }
        figures.add("poller's memory", "MB", try BenchPolls.memory(bench.cluster))
        print(
            figures.table(
                title:
                    "poll of SAP: \(people) people, \(entries) records each; medians of \(rounds) rounds, on "
                    + BenchCluster.place))
        let listing = figures.median("requests of a listing") / Self.intervalSeconds
        let comparing = figures.median("requests of a full comparison") / Self.fullIntervalSeconds
        print("  requests a second, listed every five minutes: \(BenchFigures.text(listing))")
        print("  requests a second, compared in full every day: \(BenchFigures.text(comparing))")
        print(BenchFigures.ratio("requests a second, both", listing + comparing, aim: 1, isAtMost: true))
        print(
            BenchFigures.ratio(
                "intervals until a change is seen", figures.median("a changed record is seen after"), aim: 1,
                isAtMost: true))
    }
}
