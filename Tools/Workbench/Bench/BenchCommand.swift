import ArgumentParser

/// `workbench bench`: measures the performance that a release must not lose.
struct BenchCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "bench",
        abstract: "Measure performance against references and targets.",
        discussion: """
            Starts a cluster, writes the data and makes one run to warm up. Each further run measures the component \
            and its reference alternately; the report has the medians. Compare the ratios: absolute figures depend \
            on the machine.
            """,
        subcommands: [
            BenchRelay.self, BenchSubmit.self, BenchLive.self, BenchSnapshot.self, BenchFanOut.self,
            BenchConnections.self, BenchNotices.self, BenchOwnKinds.self, BenchOwnKindsLive.self,
            BenchOwnKindsMemory.self, BenchPowerSync.self, BenchIdle.self,
        ])
}

/// The options of every benchmark.
struct BenchOptions: ParsableArguments {
    @Option(help: "Number of runs, without the one that warms up.") var runs = 5

    @Option(help: "Additional latency of the broker, in milliseconds.") var brokerRoundTrip = 0

    @Option(help: "File for the report as JSON.") var json: String?

    func validate() throws {
        try Self.check(runs, in: 1...100, "--runs")
        try Self.check(brokerRoundTrip, in: 0...10_000, "--broker-round-trip")
    }

    static func check(_ value: Int, in range: ClosedRange<Int>, _ option: String) throws {
        guard range.contains(value) else {
            throw ValidationError("\(option) is \(range.lowerBound)…\(range.upperBound), not \(value)")
        }
    }
}
