import ArgumentParser
import Model

/// Fan-out: what follows from what people write, against what PostgreSQL alone takes for it.
struct BenchFanOut: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "fanout",
        abstract: "Copies of tasks, positions and shared items, against libpq alone with the same rows.",
        discussion: """
            A service is a process with one worker, where nothing else is said. The clock starts when the first rows \
            have changed, which do not count. libpq alone runs statements that were made beforehand.
            """)

    /// What is measured.
    enum Row: String, CaseIterable, ExpressibleByArgument {
        /// Tasks that change, each with one copy.
        case tasks
        /// A team of 10,000 tasks that is deleted.
        case deletion
        /// Everything published again.
        case republished
        /// People who tell where they are.
        case positions
        /// An item with 100 recipients.
        case sharing
        /// The memory of each service.
        case memory
        /// From a manager's device to a member's, and back.
        case live
    }

    @OptionGroup var options: BenchOptions

    @Option(help: "What is measured, several times for several. (default: tasks)")
    var row: [Row] = []

    @Option(help: "How many tasks there are; all of them change in each round.")
    var tasks = 20_000

    @Option(help: "How many tasks are published again.")
    var republished = 100_000

    @Option(help: "The most objects of which the memory is measured; the fewest are 10,000.")
    var objects = 300_000

    func run() async throws {
        for row in row.isEmpty ? [.tasks] : row {
            switch row {
            case .tasks: try BenchFanOutTasks(options: options, taskCount: tasks).run()
            case .deletion: try BenchFanOutDeletion(options: options).run()
            case .republished: try BenchFanOutRepublished(options: options, taskCount: republished).run()
            case .positions: try BenchFanOutPositions(options: options).run()
            case .sharing: try BenchFanOutSharing(options: options).run()
            case .memory: try BenchFanOutMemory(options: options, objectCount: objects).run()
            case .live: try await BenchFanOutLive(rounds: options.rounds).run()
            }
        }
    }
}

extension BenchPlace {
    /// With the topics that a service reads.
    init(_ options: BenchOptions, for service: ServiceDescription) throws {
        let topics = service.topics.map { ($0.name, $0.partitions) }
        try self.init(options, topics: Dictionary(uniqueKeysWithValues: topics))
    }
}

/// Changed tasks into their teams' copies.
struct BenchFanOutTasks {
    let options: BenchOptions
    let taskCount: Int

    func run() throws {
        let service = Services.taskFanOut
        let place = try BenchPlace(options, for: service)
        defer { place.end() }
        var tasks = try BenchTasks(on: place)
        try tasks.add(taskCount)
        try tasks.world.begin(service)
        var figures = BenchFigures()
        // The first time there are no copies yet.
        let first = try measure(service, 1, &tasks, place)
        for round in 1...options.rounds {
            print("round \(round) of \(options.rounds)")
            figures.add("libpq alone", "tasks/s", try tasks.changeAlone())
            let found = try measure(service, 1, &tasks, place)
            figures.add("task-fan-out, 1 worker", "tasks/s", found.perSecond)
            figures.add("its own CPU", "µs/task", found.ownMicroseconds)
            figures.add("PostgreSQL's CPU", "µs/task", found.backendMicroseconds)
            figures.add("task-fan-out, 2 workers", "tasks/s", try measure(service, 2, &tasks, place).perSecond)
            print("  \(figures.latest)")
        }
        print(figures.table(title: "fanout: tasks, medians of \(options.rounds) rounds, on \(place.brokerName)"))
        print("  first copies of \(taskCount) tasks: \(BenchFigures.text(first.perSecond)) tasks/s")
        for workers in ["1 worker", "2 workers"] {
            print(
                BenchFigures.ratio(
                    "task-fan-out / libpq alone, \(workers)",
                    figures.median("task-fan-out, \(workers)") / figures.median("libpq alone"), aim: 0.6))
        }
        print(
            BenchFigures.ratio(
                "its CPU / PostgreSQL's", figures.median("its own CPU") / figures.median("PostgreSQL's CPU"), aim: 0.5,
                isAtMost: true))
    }

    /// Changes all tasks, publishes that, and lets the service do its work.
    private func measure(
        _ service: ServiceDescription, _ workers: Int, _ tasks: inout BenchTasks, _ place: BenchPlace
    ) throws -> BenchWorker.Rate {
        try tasks.change(tasks.tasks)
        try tasks.publish(tasks.tasks)
        let start = try tasks.world.position()
        let worker = try BenchWorker(service, count: workers, on: place)
        defer { worker.end() }
        return try worker.rate(from: start, count: taskCount, in: &tasks.world)
    }
}
