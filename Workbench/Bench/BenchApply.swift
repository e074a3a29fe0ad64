import ArgumentParser
import Essentials
import FoundationEssentials
import Kafka
import Logging
import Model
import Postgres
import Realms
import Work

/// Events from Kafka into objects, against the same rows written by libpq alone.
struct BenchApply: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "apply",
        abstract: "Events consumed into copies of their objects, against libpq alone with the same rows.",
        discussion: """
            The worker is the one that keeps 1:1 copies; it writes up to 4,000 events at a time, libpq alone 1,000. \
            The clock starts when its first batch has come, which does not count.
            """)

    @OptionGroup var options: BenchOptions

    @Option(help: "Events per environment and round; half of them write an object the second time.")
    var events = 100_000

    private static let realmCount = 1_000
    private static let partitionCount = 48
    private static let batchCount = 1_000

    func run() throws {
        var topics: [String: Int] = [:]
        for round in 1...options.rounds {
            for count in 1...2 {
                for index in 0..<count { topics[Self.topic(round, count, index)] = Self.partitionCount }
            }
        }
        let place = try BenchPlace(options, topics: topics)
        defer { place.end() }
        var admin = try Connection(place.conninfo)
        let environments = try ["a", "b"].map { name in
            try admin.run("INSERT INTO realm.environment (name) VALUES (\(name)) RETURNING id")[0]
                .decode(EnvironmentID.self)
        }
        var figures = BenchFigures()
        let sources = try environments.map { environment in
            try BenchEvents(environment, count: events, on: place.conninfo)
        }
        for round in 1...options.rounds {
            print("round \(round) of \(options.rounds)")
            for count in 1...2 {
                let limit = try measure(count, &admin) { try writeAlone(sources[$0], place) }
                figures.add("libpq alone, \(connections(count))", "events/s", limit.rate)
                let worker = try apply(count, sources, place, &admin, round: round)
                figures.add("worker, \(connections(count))", "events/s", worker.rate)
                figures.add("worker's own CPU, \(connections(count))", "µs/event", worker.ownMicroseconds)
                figures.add("PostgreSQL's CPU, \(connections(count))", "µs/event", worker.backendMicroseconds)
            }
        }
        print(figures.table(title: "apply (1:1 copies), medians of \(options.rounds) rounds, on \(place.brokerName)"))
        for count in 1...2 {
            let name = connections(count)
            print(
                BenchFigures.ratio(
                    "worker / libpq alone, \(name)",
                    figures.median("worker, \(name)") / figures.median("libpq alone, \(name)"), aim: 0.9))
        }
        print(
            BenchFigures.ratio(
                "worker's CPU / PostgreSQL's, 1 connection",
                figures.median("worker's own CPU, 1 connection") / figures.median("PostgreSQL's CPU, 1 connection"),
                aim: 0.3, isAtMost: true))
    }

    /// A topic of its own for each measurement: it holds what is measured and nothing else.
    private static func topic(_ round: Int, _ count: Int, _ index: Int) -> String { "bench.\(round).\(count).\(index)" }

    private func connections(_ count: Int) -> String { count == 1 ? "1 connection" : "\(count) connections" }

    struct Measured {
        var rate: Double
        var ownMicroseconds: Double
        var backendMicroseconds: Double
    }

    // MARK: The limit

    /// Runs `body` for each index on a thread of its own, on empty tables.
    private func measure(
        _ count: Int, _ admin: inout Connection, _ body: @escaping @Sendable (Int) throws -> Duration
    ) throws -> Measured {
        try empty(&admin)
        let threads = (0..<count).map { index in BenchThread { try body(index) } }
        let times = try threads.map { try $0.result() }
        let longest = times.max() ?? .zero
        return Measured(
            rate: Double(count * events) / longest.inSeconds, ownMicroseconds: 0, backendMicroseconds: 0)
    }

    private func empty(_ admin: inout Connection) throws {
        try admin.runScript("TRUNCATE store.object, store.change; UPDATE realm.environment SET position = 0")
        try admin.runScript("CHECKPOINT")
    }

    /// The same statements with parameters made beforehand: what PostgreSQL alone can do.
    private func writeAlone(_ source: BenchEvents, _ place: BenchPlace) throws -> Duration {
        let batches = try source.batches(of: Self.batchCount)
        var connection = try Connection(place.conninfo)
        try connection.run("SELECT 1")
        let start = ContinuousClock.now
        for statements in batches { try connection.run(statements) }
        return ContinuousClock.now - start
    }

    // MARK: The worker

    private func apply(
        _ count: Int, _ sources: [BenchEvents], _ place: BenchPlace, _ admin: inout Connection, round: Int
    ) throws -> Measured {
        try empty(&admin)
        let topics = (0..<count).map { Self.topic(round, count, $0) }
        for index in 0..<count {
            try sources[index].produce(to: topics[index], brokers: place.brokers)
            try sources[index].begin(topics[index], partitions: Self.partitionCount, on: &admin)
        }
        let (start, end, release) = (BenchGate(count: count), BenchGate(count: count), BenchGate(count: 1))
        let events = events
        let threads = (0..<count).map { index in
            BenchThread {
                // Whatever is thrown is told by `result()`; the gates must not wait for it.
                defer {
                    start.pass()
                    end.pass()
                }
                let workerPlace = WorkerPlace(
                    group: topics[index], topics: [topics[index]], brokers: place.brokers, properties: [:],
                    conninfo: place.conninfo)
                var logger = Logger(label: "bench")
                logger.logLevel = .error
                var worker = try CopyWorker(at: workerPlace, logger: logger) { $0 }
                var finished = 0
                var began: ContinuousClock.Instant?
                var uncounted = 0
                while finished < events {
                    let (taken, done) = try worker.step(waitMax: .milliseconds(100))
                    if taken > 0, began == nil {
                        began = .now
                        uncounted = taken
                        start.pass()
                    }
                    finished += done
                }
                let time = (began ?? .now).duration(to: .now)
                // The connection stays until its backend's processor time was read.
                end.pass()
                release.wait()
                return (time, events - uncounted)
            }
        }
        start.wait()
        let before = (own: CPUTime.own(), backends: try CPUTime.backends(on: &admin))
        end.wait()
        let after = (own: CPUTime.own(), backends: try CPUTime.backends(on: &admin))
        release.pass()
        let times = try threads.map { try $0.result() }
        let total = Double(times.map(\.1).reduce(0, +))
        return Measured(
            rate: total / (times.map(\.0).max() ?? .zero).inSeconds,
            ownMicroseconds: (after.own - before.own) / total * 1e6,
            backendMicroseconds: (after.backends - before.backends) / total * 1e6)
    }
}
