import ArgumentParser
import DeviceClient
import Essentials
import FoundationEssentials
import HTTPClient
import LocalCluster
import Model
import Postgres

/// From one device to another of the same person, and from a device to the back end and back.
struct BenchLive: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "live",
        abstract: "Mutation on a device to line on another, and device to released to device.",
        discussion: """
            A mutation's time begins when the device has it to send: the wait for the answer to the request before \
            counts. The back end takes 20 ms for each call. Where somebody else uses the processors or the disk, \
            the figures grow with it: each round tells how much was waited for both.
            """)

    @OptionGroup var options: BenchClusterOptions

    @Option(help: "Mutations per second.")
    var rate = 200
    @Option(help: "Seconds for which they are sent.")
    var seconds = 6
    @Option(help: "Entries that go to the back end in a round, 20 per second.")
    var entries = 200

    private static let releaseRate = 20

    func run() async throws {
        var figures = BenchFigures()
        let organisation = GeneratedOrganisation.make(people: 1)
        try await BenchCluster.with(people: organisation.people) { bench in
            try await bench.fillRealms(of: organisation)
            _ = try await bench.sap.setSwitches(#"{"latencyMs":20}"#)
            let source = try await BenchEntries(bench, organisation)
            let clocks = (lines: BenchClock(), answers: BenchClock(), released: BenchClock())
            let (opened, open) = AsyncStream.makeStream(of: Void.self)
            let follower = Task {
                try await Self.follow(bench, clocks.lines, clocks.released) { open.yield() }
            }
            defer { follower.cancel() }
            for await _ in opened { break }
            var sender = try BenchSender(bench)
            for round in 1...options.rounds {
                print("round \(round) of \(options.rounds)")
                let (before, pressure) = (try await Self.syncs(bench), BenchPressure.now())
                try await sender.send(
                    rate * seconds, perSecond: rate, clocks.lines, answered: clocks.answers
                ) { number in
                    Array(#"{"text":"Draft \#(number)","durationSeconds":1800}"#.utf8)
                }
                try await clocks.lines.settled(within: .seconds(10))
                pressure.add(to: &figures)
                let after = try await Self.syncs(bench)
                let sync = (after.milliseconds - before.milliseconds) / max(after.count - before.count, 1)
                figures.add("PostgreSQL's fsync, mean", "ms", sync)
                add(clocks.answers.take(), "answer to the sender", &figures)
                add(clocks.lines.take(), "line on another device", &figures)
                try await sender.send(entries, perSecond: Self.releaseRate, clocks.released) { number in
                    try source.make(number).fields
                }
                try await clocks.released.settled(within: .seconds(60))
                add(clocks.released.take(), "released on another device", &figures)
                _ = clocks.lines.take()
                print("  \(figures.latest)")
            }
        }
        print(figures.table(title: "live, medians of \(options.rounds) rounds, on \(BenchCluster.place)"))
        let name = "line on another device"
        let slowest = figures.largest("\(name), p50")
        print(BenchFigures.ratio("line p50 of the slowest round, ms", slowest, aim: 8, isAtMost: true))
        print(BenchFigures.ratio("line p99, ms", figures.median("\(name), p99"), aim: 60, isAtMost: true))
    }

    /// How often PostgreSQL has had its log written through to the disk, and how long that took.
    private static func syncs(_ bench: BenchCluster) async throws -> (count: Double, milliseconds: Double) {
        try await bench.pool.run { connection in
            let rows = try connection.run("SELECT wal_sync, wal_sync_time FROM pg_stat_wal")
            return (Double(try rows[0].value(0, as: Int64.self)), try rows[0].value(1))
        }
    }

    private func add(_ times: [Duration], _ name: String, _ figures: inout BenchFigures) {
        let percentiles = Percentiles(times)
        for percent in [50, 99] {
            figures.add("\(name), p\(percent)", "ms", (percentiles[percent]?.inSeconds ?? .nan) * 1_000)
        }
        figures.add("\(name), count", "entries", Double(percentiles.count))
    }

    /// The other device: it reads its stream until it is cancelled.
    private static func follow(
        _ bench: BenchCluster, _ lines: BenchClock, _ released: BenchClock, opened: () -> Void
    ) async throws {
        for try await line in try await bench.gateway.sync(
            token: bench.tokens[0], body: GatewayClient.firstSyncBody(isLive: true))
        {
            let now = ContinuousClock.now
            switch try SyncLine.read(line) {
            case .checkpoint: opened()
            case .objects(_, _, let list):
                for change in list where change.id.kind == .timeEntry {
                    lines.arrived(change.id.id, at: now)
                    if let object = change.object, SeenEntry(object)?.status == .released {
                        released.arrived(change.id.id, at: now)
                    }
                }
            case .open, .closed, .keepalive, nil: break
            }
        }
    }
}
