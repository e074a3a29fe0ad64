import ArgumentParser
import CommandLineSupport

/// `workbench bench`: measures the performance that a release must not lose.
struct BenchCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "bench",
        abstract: "Measure performance against references and targets.",
        discussion: """
            Starts a cluster, writes the data and makes one run to warm up. Each further run measures the component \
            and its reference alternately; the report has the medians. Compare the ratios: absolute figures depend \
            on the machine. With --summary, no benchmark is named.
            """,
        subcommands: scenarios)

    private static let scenarios: [any BenchScenario.Type] = [
        BenchRelay.self, BenchSubmit.self, BenchLive.self, BenchTasksLive.self, BenchTasksDeletion.self,
        BenchSnapshot.self, BenchFanOut.self, BenchSharing.self, BenchPositions.self, BenchImport.self, BenchPoll.self,
        BenchMonitor.self, BenchConnections.self, BenchNotices.self, BenchOwnKinds.self, BenchOwnKindsLive.self,
        BenchOwnKindsMemory.self, BenchPowerSync.self, BenchIdle.self,
    ]

    @Flag(help: "Run all benchmarks three times each, and print a table of their ratios and targets.")
    var summary = false

    private static let runs = 3

    func run() async throws {
        guard summary else { throw CleanExit.helpRequest(self) }
        var rows: [[String]] = []
        var failed: [String] = []
        for scenario in Self.scenarios {
            let name = scenario.configuration.commandName ?? ""
            print(name)
            do {
                rows += try await scenario.parse(["--runs", "\(Self.runs)"]).report().summaryRows.map { [name] + $0 }
            } catch {
                print("  \(error)")
                rows.append([name, "", "", "", "-", "", "failed"])
                failed.append(name)
            }
        }
        let table = Table(
            [
                "benchmark", "ratio or figure", .right("ours"), .right("reference"), .right("value"), "target",
                "result",
            ], rows
        ) { $0 }
        print("\nMedians of \(Self.runs) runs, unless a row names another value")
        print("\(BenchInstallation.description)\n\n\(table.text)")
        // The output has the reasons.
        if !failed.isEmpty { throw ExitCode.failure }
    }
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
