import ArgumentParser

/// `workbench bench`: measures the performance that a release must not lose.
struct BenchCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "bench",
        abstract: "Measure performance against references and targets.",
        discussion: """
            Starts a cluster, writes the data and makes one run to warm up. Each further run measures the component \
            and \
            its reference alternately; the report has the medians. Compare the ratios: absolute figures depend on the \
            machine.
            """,
        subcommands: [
            BenchRelay.self, BenchSubmit.self, BenchLive.self, BenchSnapshot.self, BenchFanOut.self,
            BenchConnections.self,
        ])
}

/// The options of every benchmark.
struct BenchOptions: ParsableArguments {
    @Option(help: "Number of runs, without the one that warms up.")
    var rounds = 5

    @Option(help: "Additional latency of the broker, in milliseconds.")
    var brokerRoundTrip = 0

    @Option(help: "File for the report as JSON.")
    var json: String?

    func validate() throws {
        guard (1...100).contains(rounds) else { throw ValidationError("--rounds is 1…100, not \(rounds)") }
        guard (0...10_000).contains(brokerRoundTrip) else {
            throw ValidationError("--broker-round-trip is 0…10000, not \(brokerRoundTrip)")
        }
    }
}
