import ArgumentParser
import FoundationEssentials
import LocalCluster

/// `workbench bench`: how fast the parts are, as ratios against a limit or a peer measured in the same run.
struct BenchCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "bench",
        abstract: "Measures against limits: medians of interleaved runs.",
        discussion: """
            Each figure is measured in turn with its limit, round after round, in the same run; the medians are printed.
            Quote the ratios: absolute figures belong to the machine.
            """,
        subcommands: [
            BenchRelay.self, BenchSnapshot.self, BenchFootprint.self, BenchLive.self, BenchSubmit.self,
            BenchConnections.self, BenchEnvironments.self, BenchOnboard.self, BenchPoll.self, BenchFanOut.self,
            BenchImport.self, BenchDefects.self, BenchMonitor.self, BenchTracing.self,
        ])
}

/// What every benchmark is told.
struct BenchOptions: ParsableArguments {
    @Option(help: "A PostgreSQL connection string; databases are made and dropped there.")
    var database = ProcessInfo.processInfo.environment["FIELDPOST_DATABASE_URL"] ?? ""

    @Option(help: "Kafka brokers. Without it a sandbox broker is started.")
    var brokers: String?

    @Option(help: "Milliseconds that each answer of the sandbox broker takes longer.")
    var brokerRoundTrip = 0

    @Option(help: "How often each is measured.")
    var rounds = 5

    @Option(help: "The folder of the schema's files. (default: that of the sources)")
    var schema = LocalCluster.schemaFolder

    func validate() throws {
        guard !database.isEmpty else {
            throw ValidationError("--database (or FIELDPOST_DATABASE_URL) is missing: a PostgreSQL connection string")
        }
        guard (1...100).contains(rounds) else { throw ValidationError("--rounds is 1…100, not \(rounds)") }
        guard brokers == nil || brokerRoundTrip == 0 else {
            throw ValidationError("--broker-round-trip is of the sandbox broker, not of the one at --brokers")
        }
    }
}
