import Essentials
import FoundationEssentials
import Glibc
import Model
import ObjectStore
import Postgres

/// A team of 10,000 tasks that is deleted: how long it takes, and what other tasks notice of it.
struct BenchFanOutDeletion {
    let options: BenchOptions

    private static let teamCount = 10_000
    private static let otherCount = 2_000
    private static let perSecond = 100
    private static let undisturbed = Duration.seconds(6)
    private static let lookInterval = Duration.milliseconds(50)

    func run() throws {
        let service = Services.taskFanOut
        let place = try BenchPlace(options, for: service)
        defer { place.end() }
        var tasks = try BenchTasks(on: place)
        let others = try tasks.add(Self.otherCount)
        let red = try tasks.add(Self.teamCount, perTeam: Self.teamCount)
        try tasks.world.begin(service)
        let worker = try BenchWorker(service, on: place)
        defer { worker.end() }
        var start = try tasks.world.position()
        try tasks.publish(others + red)
        try tasks.world.wait(until: start + Int64(others.count + red.count))

        var figures = BenchFigures()
        for round in 1...options.rounds {
            print("round \(round) of \(options.rounds)")
            let alone = try tasks.writeAlone(red).inSeconds
            figures.add("libpq alone, 20000 rows", "s", alone)
            let end = ContinuousClock.now + Self.undisturbed
            add(try edit(others, &tasks) { _ in ContinuousClock.now >= end }, "others undisturbed", &figures)

            let team = ObjectKey(realm: tasks.world.common, kind: .team, id: red[0].team)
            let deleted = ContinuousClock.now
            try tasks.world.delete(team)
            try tasks.world.publish([BenchWorld.Place(path: .common, key: team)], to: Topics.team)
            // Not until the others' last edits have come as well.
            var done = deleted
            let others = try edit(others, &tasks) { tasks in
                done = .now
                return try Self.isDone(team.id, &tasks)
            }
            add(others, "others meanwhile", &figures)
            let time = (done - deleted).inSeconds
            figures.add("team of 10000 tasks deleted", "s", time)
            figures.add("times libpq alone", "", time / alone)
            print("  \(figures.latest)")

            try tasks.world.put([(team, #"{"name":"Team"}"#)])
            try tasks.change(red)
            start = try tasks.world.position()
            try tasks.publish(red)
            try tasks.world.wait(until: start + Int64(red.count))
        }
        print(figures.table(title: "fanout: deletion, medians of \(options.rounds) rounds, on \(place.brokerName)"))
        print(
            BenchFigures.ratio(
                "team deleted / libpq alone", figures.median("times libpq alone"), aim: 2, isAtMost: true))
        print(
            BenchFigures.ratio(
                "others' p99 meanwhile / undisturbed",
                figures.median("others meanwhile, p99") / figures.median("others undisturbed, p99"), aim: 1.5,
                isAtMost: true))
    }

    /// Whether no task knows the team any more.
    private static func isDone(_ team: UUID, _ tasks: inout BenchTasks) throws -> Bool {
        try tasks.world.connection.run(
            """
            SELECT NOT EXISTS (
                SELECT FROM task.copy WHERE environment_id = \(tasks.world.environment.rawValue) AND team_id = \(team))
            """)[0].value(0)
    }

    /// Changes one task after the other, at a steady pace.
    ///
    /// - Parameter isOver: Asked every 50 ms.
    /// - Returns: How long each takes until its copy says the same.
    private func edit(
        _ others: [BenchTasks.Task], _ tasks: inout BenchTasks, until isOver: (inout BenchTasks) throws -> Bool
    ) throws -> [Duration] {
        let interval = Duration.seconds(1) / Self.perSecond
        var (due, look) = (ContinuousClock.now, ContinuousClock.now + Self.lookInterval)
        var waiting: [UUID: (task: BenchTasks.Task, since: ContinuousClock.Instant)] = [:]
        var times: [Duration] = []
        var next = others.startIndex
        var isEnding = false
        while !isEnding || !waiting.isEmpty {
            if !isEnding, due <= .now, waiting[others[next].id] == nil {
                waiting[others[next].id] = (others[next], .now)
                try tasks.edit(others[next])
                due += interval
                next = (next + 1) % others.count
            }
            for task in try tasks.upToDate(waiting.values.map(\.task)) {
                if let since = waiting.removeValue(forKey: task)?.since { times.append(ContinuousClock.now - since) }
            }
            if look <= .now {
                isEnding = try isEnding || isOver(&tasks)
                look = .now + Self.lookInterval
            }
            poll(nil, 0, 2)
        }
        return times
    }

    private func add(_ times: [Duration], _ name: String, _ figures: inout BenchFigures) {
        let percentiles = Percentiles(times)
        for percent in [50, 99] {
            figures.add("\(name), p\(percent)", "ms", (percentiles[percent]?.inSeconds ?? .nan) * 1_000)
        }
    }
}

/// Everything that is published again: nothing follows from it.
struct BenchFanOutRepublished {
    let options: BenchOptions
    let taskCount: Int

    /// Tasks that change at last: when their copies are written, all before them was looked at.
    private static let lastCount = 500

    func run() throws {
        let service = Services.taskFanOut
        let place = try BenchPlace(options, for: service)
        defer { place.end() }
        var tasks = try BenchTasks(on: place)
        try tasks.add(taskCount)
        try tasks.world.begin(service)
        let all = tasks.tasks
        let last = Array(all.prefix(Self.lastCount))
        var worker = try BenchWorker(service, on: place)
        var start = try tasks.world.position()
        try tasks.publish(all)
        try tasks.world.wait(until: start + Int64(all.count))
        worker.end()
        var figures = BenchFigures()
        for round in 1...options.rounds {
            print("round \(round) of \(options.rounds)")
            try tasks.publish(all)
            try tasks.publishCopies(of: all)
            try tasks.change(last)
            try tasks.publish(last)
            start = try tasks.world.position()
            let began = ContinuousClock.now
            worker = try BenchWorker(service, on: place)
            try tasks.world.wait(until: start + Int64(last.count))
            let time = ContinuousClock.now - began
            worker.end()
            let used = try tasks.world.position() - start - Int64(last.count)
            guard used == 0 else { throw BenchPlace.Missing(description: "\(used) positions were used") }
            figures.add("everything of \(taskCount) tasks published again", "s", time.inSeconds)
            figures.add("positions used", "", Double(used))
            print("  \(figures.latest)")
        }
        print(figures.table(title: "fanout: republished, medians of \(options.rounds) rounds, on \(place.brokerName)"))
    }
}
