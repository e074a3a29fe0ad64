import ArgumentParser
import Essentials
import LocalCluster
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
            let rate = try await fanOut(tasks, workers: workers, on: installation)
            report.add(Self.name(workers), "tasks/s", rate.perSecond)
            guard workers == 1 else { continue }
            report.add("processor time", "µs/task", rate.own)
            report.add("PostgreSQL's processor time", "µs/task", rate.database)
        }
        // After the service: before the first run there are no copies.
        report.add("PostgreSQL alone", "tasks/s", try tasks.copyAlone())
    }

    /// Processor times are in microseconds per task.
    private func fanOut(
        _ tasks: BenchTasks, workers: Int, on installation: BenchInstallation
    ) async throws -> (perSecond: Double, own: Double, database: Double) {
        let start = try tasks.position()
        let worker = try installation.start(
            Services.taskFanOut, variables: ["FIELDPOST_WORKER_COUNT": "\(workers)"])
        // A service that is terminated commits its offsets.
        defer { if worker.terminate(within: .seconds(20)) == nil { worker.kill9() } }
        func sample(
            after position: Int64
        ) async throws -> (time: ContinuousClock.Instant, position: Int64, own: Double, database: Double) {
            var found = Int64(0)
            try await waitUntil("position \(position)", within: .seconds(300), interval: .milliseconds(5)) {
                guard worker.isRunning else { throw ClusterFailure(worker.logTail()) }
                found = try tasks.position()
                return found >= position
            }
            let now = ContinuousClock.now
            return (
                now, found, ProcessUsage.processorTime(of: worker.id), installation.processorTime(of: .database)
            )
        }
        let first = try await sample(after: start + Int64(max(1, tasks.count / 5)))
        let last = try await sample(after: start + Int64(tasks.count))
        let count = Double(last.position - first.position)
        return (
            count / (last.time - first.time).inSeconds, (last.own - first.own) / count * 1e6,
            (last.database - first.database) / count * 1e6
        )
    }
}
