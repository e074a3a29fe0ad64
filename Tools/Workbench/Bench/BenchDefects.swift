import ArgumentParser
import Essentials
import FoundationEssentials
import LocalCluster
import Model

/// Rounds of the notifier, against reading the same pages alone; and commands, against what their window allows.
struct BenchDefects: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "defects",
        abstract: "Rounds over what changed, comparisons of a whole tracker, commands, and what they cost.",
        discussion: """
            The tracker is the sandbox's Compass; the service has one worker. A run is measured from when its poll is \
            written until its last page is; commands from when all are handed in until all are done.
            """)

    /// What is measured.
    enum Row: String, CaseIterable, ExpressibleByArgument {
        /// Rounds and comparisons of the notifier.
        case rounds
        /// Commands that the submitter does.
        case commands
    }

    @Option(help: "What is measured, several times for several. (default: rounds)")
    var row: [Row] = []

    @Option(help: "People; with a hundredth of them the memory is measured too.")
    var people = 10_000
    @Option(help: "Defects of the tracker.")
    var defects = 100_000
    @Option(help: "How many of them change between two rounds.")
    var changes = 2_000
    @Option(help: "How often each is measured.")
    var rounds = 3
    @Option(help: "Milliseconds that Compass takes for each answer.")
    var latency = 0

    /// Later times are not believed: each round is 200 minutes after the one before.
    private static let roundsMax = 4
    private static let pageRows = 500
    /// A person keeps so many notices.
    private static let noticesKept = 500

    func validate() throws {
        guard (100...100_000).contains(people) else { throw ValidationError("--people is 100…100000, not \(people)") }
        guard (1...1_000_000).contains(defects) else {
            throw ValidationError("--defects is 1…1000000, not \(defects)")
        }
        guard (1...defects).contains(changes) else {
            throw ValidationError("--changes is 1…\(defects), not \(changes)")
        }
        guard (0...10_000).contains(latency) else {
            throw ValidationError("--latency is 0…10000, not \(latency)")
        }
        guard (1...Self.roundsMax).contains(rounds) else {
            throw ValidationError("--rounds is 1…\(Self.roundsMax), not \(rounds)")
        }
    }

    func run() async throws {
        for row in row.isEmpty ? [.rounds] : row {
            switch row {
            case .rounds: try await runRounds()
            case .commands: try await BenchDefectCommands(rounds: rounds, latency: latency).run()
            }
        }
    }

    private func runRounds() async throws {
        var figures = BenchFigures()
        for count in [people / 100, people] { try await measure(count, &figures) }
        print(
            figures.table(
                title:
                    "defects: \(people) people, \(defects) defects, \(changes) changes a round, \(latency) ms an "
                    + "answer; medians of \(rounds) rounds, on \(BenchCluster.place)"))
        let name = "\(people) people"
        func ratio(_ what: String, _ one: String, aim: Double) {
            let value = figures.median("\(name), \(one)") / figures.median("\(name), \(one), read alone")
            print(BenchFigures.ratio(what, value, aim: aim, isAtMost: true))
        }
        ratio("a round over \(changes) changes / reading alone", "round", aim: 1.5)
        ratio("a comparison that finds nothing / reading alone", "comparison", aim: 2)
        // With the one that was read before.
        let pages = Double((changes + Self.pageRows) / Self.pageRows)
        print(
            BenchFigures.ratio(
                "requests of a round", figures.median("\(name), requests"), aim: 3 + pages, isAtMost: true))
        print(
            BenchFigures.ratio(
                "objects written by a round that finds nothing", figures.median("\(name), written"), aim: 1,
                isAtMost: true))
        let growth =
            figures.median("\(name), notifier's memory") / figures.median("\(people / 100) people, notifier's memory")
        print(
            BenchFigures.ratio("memory, \(people) / \(people / 100) people", growth, aim: 1.3, isAtMost: true))
    }

    private func measure(_ count: Int, _ figures: inout BenchFigures) async throws {
        print("\(count) people: loading \(defects) defects")
        let bench = try await BenchTracker(
            people: count, defects: defects, service: .defectNotifier,
            ["FIELDPOST_NOTIFIER_COMPARISON_INTERVAL": "604800s"])
        do {
            try await bench.setLatency(latency)
            try await measure(bench, "\(count) people", &figures)
            figures.add("\(count) people, notifier's memory", "MB", try bench.memory())
        } catch {
            await bench.stop()
            throw error
        }
        await bench.stop()
    }

    /// Notices that people have by then: of each change one, for its defect's owner. Defects have owners in turn, and
    /// each round begins with a change of the first.
    private func noticeCount(after round: Int, _ people: Int) -> Int {
        (0..<min(people, changes)).reduce(0) { count, person in
            let own = changes / people + (person < changes % people ? 1 : 0) + (person == 0 ? 1 : 0)
            return count + min(round * own, Self.noticesKept)
        }
    }

    private func measure(_ bench: BenchTracker, _ name: String, _ figures: inout BenchFigures) async throws {
        print("\(name): the first runs mirror everything")
        figures.add("\(name), first runs", "s", try await bench.begin().inSeconds)
        for round in 1...rounds {
            print("\(name): round \(round) of \(rounds)")
            // The window ends where the last round's changes were: a single one moves it on.
            try await bench.change(1, round: 0)
            _ = try await bench.run(.changes)
            try await bench.change(changes, round: round)
            let now = try await bench.now()
            let since = Timestamp(millisecondsSinceEpoch: now.millisecondsSinceEpoch - 3_600_000)
            let readAlone = try await bench.read(.changes, rowsMin: changes, since: since)
            figures.add("\(name), round, read alone", "s", readAlone.inSeconds)
            let before = try await bench.requestCount()
            figures.add("\(name), round", "s", try await bench.run(.changes).inSeconds)
            figures.add("\(name), requests", "", Double(try await bench.requestCount() - before))
            let (told, expected) = (try await bench.count(.notice), noticeCount(after: round, bench.people.count))
            guard told == expected else {
                throw BenchPlace.Missing(description: "\(told) notices after round \(round), not \(expected)")
            }
            let position = try await bench.position()
            _ = try await bench.run(.changes)
            figures.add("\(name), written", "positions", Double(try await bench.position() - position))
            let compared = try await bench.read(.comparison, rowsMin: defects, since: since)
            figures.add("\(name), comparison, read alone", "s", compared.inSeconds)
            figures.add("\(name), comparison", "s", try await bench.run(.comparison).inSeconds)
        }
    }
}
