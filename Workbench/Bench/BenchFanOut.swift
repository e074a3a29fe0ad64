import ArgumentParser
import Essentials
import Foundation
import LocalCluster
import Model
import Postgres

/// Changed tasks into their copies, against the same guarded statements run by libpq alone.
struct BenchFanOut: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "fanout",
        abstract: "Changed tasks into their teams' copies, against libpq alone with the same guarded statements.",
        discussion: """
            Teams of 30, each task with one copy. The clock starts when the first copies have changed, which do not \
            count. The service is a process with one worker; libpq alone runs statements that were made beforehand.
            """)

    @OptionGroup var options: BenchOptions

    @Option(help: "How many tasks there are; all of them change in each round.")
    var tasks = 20_000

    private static let startMax = Duration.seconds(120)

    func run() throws {
        let service = Services.taskFanOut
        let topics = service.topics.map { ($0.name, $0.partitions) }
        let place = try BenchPlace(options, topics: Dictionary(uniqueKeysWithValues: topics))
        defer { place.end() }
        var world = try BenchTasks(on: place.conninfo)
        try world.fill(tasks)
        try world.begin(service, on: place.conninfo)
        var figures = BenchFigures()
        // The first time there are no copies yet.
        let first = try measure(service, &world, place)
        for round in 1...options.rounds {
            print("round \(round) of \(options.rounds)")
            figures.add("libpq alone", "tasks/s", try world.changeAlone())
            let found = try measure(service, &world, place)
            figures.add("task-fan-out, 1 worker", "tasks/s", found.rate)
            figures.add("its own CPU", "µs/task", found.ownMicroseconds)
            figures.add("PostgreSQL's CPU", "µs/task", found.backendMicroseconds)
            print("  \(figures.latest)")
        }
        print(figures.table(title: "fanout, medians of \(options.rounds) rounds, on \(place.brokerName)"))
        print("  first copies of \(tasks) tasks: \(BenchFigures.text(first.rate)) tasks/s")
        print(
            BenchFigures.ratio(
                "task-fan-out / libpq alone",
                figures.median("task-fan-out, 1 worker") / figures.median("libpq alone"), aim: 0.6))
        print(
            BenchFigures.ratio(
                "its CPU / PostgreSQL's", figures.median("its own CPU") / figures.median("PostgreSQL's CPU"), aim: 0.5,
                isAtMost: true))
    }

    private struct Measured {
        let rate: Double
        let ownMicroseconds: Double
        let backendMicroseconds: Double
    }

    /// Changes all tasks, publishes that, and lets the service do its work.
    private func measure(
        _ service: ServiceDescription, _ world: inout BenchTasks, _ place: BenchPlace
    ) throws -> Measured {
        try world.change()
        try world.publish(to: place.brokers)
        let start = try world.position()
        let process = try ClusterProcess(
            ClusterProcess.Command(
                executable: "\(LocalCluster.executables)/\(service.name)", arguments: [],
                environment: [
                    "PATH": "/usr/bin:/bin", "FIELDPOST_DATABASE_URL": place.conninfo,
                    "FIELDPOST_KAFKA_BROKERS": place.brokers, "FIELDPOST_WORKER_COUNT": "1",
                    "FIELDPOST_LOG_LEVEL": "error",
                ], logPath: nil))
        defer { process.kill9() }
        let (begin, first) = try world.wait(until: start + 1, within: Self.startMax)
        let before = (own: CPUTime.ofFamily(process.id), backends: try CPUTime.backends(on: &world.connection))
        let (end, last) = try world.wait(until: start + Int64(tasks), within: Self.startMax)
        let after = (own: CPUTime.ofFamily(process.id), backends: try CPUTime.backends(on: &world.connection))
        // What it read is committed: the next one goes on there.
        _ = process.terminate(within: .seconds(20))
        let count = Double(last - first)
        return Measured(
            rate: count / (end - begin).inSeconds, ownMicroseconds: (after.own - before.own) / count * 1e6,
            backendMicroseconds: (after.backends - before.backends) / count * 1e6)
    }
}
