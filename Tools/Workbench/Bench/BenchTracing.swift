import ArgumentParser
import DeviceClient
import Essentials
import FoundationEssentials
import LocalCluster
import Model

/// What sending spans to a collector costs: the same work with and without it, in turn.
struct BenchTracing: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "tracing",
        abstract: "Mutations applied and back-end calls made with tracing, against the same without.",
        discussion: """
            Two whole systems, one of which sends spans to a receiver that takes and drops them. In each round the one \
            works and then the other, and the first is another one in every round. Processor time is that of all the \
            services and of PostgreSQL, without the receiver's.
            """)

    @OptionGroup var options: BenchClusterOptions

    @Option(help: "Mutations that are applied in a round.")
    var mutations = 40_000

    @Option(help: "Entries to submit in a round.")
    var entries = 4_000

    @Option(help: "The share of the requests that begin a trace, from 0 to 1.")
    var sample = 0.1

    private static let deviceCount = 8
    private static let relayMax = Duration.seconds(120)

    func validate() throws {
        guard (0...1).contains(sample) else { throw ValidationError("--sample is 0…1, not \(sample)") }
    }

    func run() async throws {
        let collector = try LocalListener.answering(status: "200 OK", headers: [])
        let organisation = GeneratedOrganisation.make(people: BenchSubmit.peopleCount)
        var submit = try BenchSubmit.parse([])
        submit.options = options
        var figures = BenchFigures()
        try await Self.with(organisation, [:]) { without in
            let tracing = [
                "FIELDPOST_TRACING_ENDPOINT": "http://\(collector.address)", "FIELDPOST_TRACING_SAMPLE": "\(sample)",
            ]
            try await Self.with(organisation, tracing) { with in
                let sides = [
                    (
                        name: "without", bench: without, source: try await BenchEntries(without, organisation),
                        sampled: 0
                    ),
                    (name: "with", bench: with, source: try await BenchEntries(with, organisation), sampled: sample),
                ]
                for round in 1...options.rounds {
                    print("round \(round) of \(options.rounds)")
                    for side in round.isMultiple(of: 2) ? sides : sides.reversed() {
                        let applied = try await apply(side.bench)
                        figures.add("apply, \(side.name)", "mutations/s", applied.rate)
                        for (part, microseconds) in applied.processorTimes {
                            figures.add("apply, \(part) \(side.name)", "µs/mutation", microseconds)
                        }
                        figures.add(
                            "apply, processor time \(side.name)", "µs/mutation",
                            applied.processorTimes.reduce(0) { $0 + $1.microseconds })
                        let submitted = try await submit.measure(
                            entries, slow: 0, side.source, side.bench, sampled: side.sampled)
                        figures.add("submit, \(side.name)", "calls/s", submitted.rate)
                        let time = submitted.processorTimes.filter { $0.part != LocalCluster.Part.sap.name }
                        figures.add(
                            "submit, processor time \(side.name)", "µs/call",
                            time.reduce(0) { $0 + $1.seconds } * 1_000_000)
                    }
                }
            }
        }
        print(figures.table(title: "tracing, medians of \(options.rounds) rounds, on \(BenchCluster.place)"))
        print("  of the requests \(BenchFigures.text(sample * 100)) % begin a trace")
        for name in ["apply", "submit"] {
            let ratio = figures.median("\(name), with") / figures.median("\(name), without")
            print(BenchFigures.ratio("\(name), against without", ratio, aim: 0.97))
            let time =
                figures.median("\(name), processor time with") / figures.median("\(name), processor time without")
            print("  \(name), processor time against without: \(BenchFigures.text(time))")
        }
    }

    /// A system whose services have these variables, and whose submitter is as in `bench submit`.
    private static func with(
        _ organisation: Organisation, _ tracing: [String: String], _ body: (BenchCluster) async throws -> Void
    ) async throws {
        var variables = Dictionary(uniqueKeysWithValues: LocalCluster.Part.wayOfAnEntry.map { ($0, tracing) })
        variables[.submitter]?["FIELDPOST_WORKER_COUNT"] = "1"
        variables[.submitter]?["FIELDPOST_SUBMITTER_INFLIGHT_MAX"] = "\(BenchSubmit.inFlight)"
        try await BenchCluster.with(variables: variables, people: organisation.people) { bench in
            try await bench.fillRealms(of: organisation)
            try await body(bench)
        }
    }

    /// Drafts of many devices at once, until they are answered and published; the submitter stands still meanwhile.
    private func apply(_ bench: BenchCluster) async throws -> Applied {
        guard await bench.cluster.terminate(.submitter, within: .seconds(30)) != nil else {
            throw BenchPlace.Missing(description: "the submitter does not stop")
        }
        let parts: [LocalCluster.Part] = [.gateway, .relay, .database]
        let before = parts.map(bench.processorTime)
        let start = ContinuousClock.now
        let each = mutations / Self.deviceCount
        try await withThrowingTaskGroup(of: Void.self) { group in
            for device in 0..<Self.deviceCount {
                group.addTask {
                    var sender = try BenchSender(bench, person: device % bench.people.count)
                    try await sender.send(each)
                }
            }
            try await group.waitForAll()
        }
        let seconds = (ContinuousClock.now - start).inSeconds
        try await bench.waitUntilRelayed(within: Self.relayMax)
        let count = Double(each * Self.deviceCount)
        return Applied(
            rate: count / seconds,
            processorTimes: zip(parts, before).map { part, before in
                (part.name, (bench.processorTime(of: part) - before) / count * 1_000_000)
            })
    }

    private struct Applied {
        let rate: Double
        let processorTimes: [(part: String, microseconds: Double)]
    }
}
