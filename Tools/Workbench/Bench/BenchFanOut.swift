import ArgumentParser
import Model

/// `task-fan-out`, compared with PostgreSQL that runs the same guarded statements.
struct BenchFanOut: BenchScenario {
    static let configuration = CommandConfiguration(
        commandName: "fanout",
        abstract: "Compare task-fan-out with the same statements alone.",
        discussion: """
            Every task is changed and published; the service writes each team's copy. The first fifth of the copies \
            does not count: the service's partitions are still assigned then.
            """)

    @OptionGroup var options: BenchOptions

    @Option(help: "Number of tasks; all of them change in each run.") var tasks = 20_000

    func validate() throws { try BenchOptions.check(tasks, in: 1...1_000_000, "--tasks") }

    static let targets =
        [1, 2].map { workers in
            BenchTarget(
                name: "\(name(workers)) / PostgreSQL alone", figure: name(workers), reference: "PostgreSQL alone",
                limit: .atLeast(0.6))
        } + [
            BenchTarget(
                name: "processor time / PostgreSQL's", figure: "processor time",
                reference: "PostgreSQL's processor time",
                limit: .atMost(0.5))
        ]

    private static func name(_ workers: Int) -> String { "task-fan-out, \(workers) worker\(workers == 1 ? "" : "s")" }

    var installation: BenchInstallation.Configuration { BenchInstallation.Configuration() }

    func setUp(_ installation: BenchInstallation) async throws -> BenchTasks {
        try BenchTasks(installation, count: tasks)
    }

    func measure(
        _ tasks: BenchTasks, on installation: BenchInstallation, _ report: inout BenchReport
    ) async throws {
        for workers in [1, 2] {
            try tasks.change()
            try tasks.publish()
            let rate = try await BenchRate.measure(
                Services.taskFanOut, workers: workers, count: tasks.count, tasks.writer, on: installation)
            report.add(Self.name(workers), "tasks/s", rate.perSecond)
            guard workers == 1 else { continue }
            rate.addProcessorTimes(to: &report, per: "task")
        }
        // After the service: before the first run there are no copies.
        report.add("PostgreSQL alone", "tasks/s", try tasks.copyAlone())
    }
}
