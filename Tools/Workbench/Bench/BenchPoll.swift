import Access
import ArgumentParser
import Essentials
import FoundationEssentials
import LocalCluster
import Model
import Postgres

/// A full comparison that finds nothing, against reading the same pages; and a project that reaches all audiences,
/// against writing as many objects alone.
struct BenchPoll: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "poll",
        abstract: "A full comparison of a company that finds nothing, against reading alone; and a project for all.",
        discussion: """
            The back end is the sandbox's e-conomic. The poller has one worker, and polls as many people at a time as \
            are read at a time. The audiences are made in the database, with what polls write there; where there are \
            more of them than 50, each has a part of the tree.
            """)

    @Option(help: "People; a tenth of them is measured too.")
    var people = 5_000
    @Option(help: "Records of each.")
    var entries = 200
    @Option(help: "Nodes of the tree that all have: 1741 are the Danish industry codes.")
    var nodes = 1_741
    @Option(help: "How often each is measured.")
    var rounds = 3

    @Option(help: "economic; or sap: what listing everybody's records costs, where changes are not told.")
    var backend = "economic"

    @Flag(help: "Only the audiences: leave the comparison out.")
    var noComparison = false

    private static let audienceCounts = [1, 50, 5_000]
    /// A tree of an audience has so much less nodes where there are more audiences than this.
    private static let wholeTreesMax = 50

    func validate() throws {
        guard (10...100_000).contains(people) else { throw ValidationError("--people is 10…100000, not \(people)") }
        guard (1...10_000).contains(entries) else { throw ValidationError("--entries is 1…10000, not \(entries)") }
        guard (60...20_000).contains(nodes) else { throw ValidationError("--nodes is 60…20000, not \(nodes)") }
        guard ["economic", "sap"].contains(backend) else {
            throw ValidationError("--backend is economic or sap, not \(backend)")
        }
        guard (1...100).contains(rounds) else { throw ValidationError("--rounds is 1…100, not \(rounds)") }
    }

    func run() async throws {
        if backend == "sap" { return try await list() }
        var figures = BenchFigures()
        if noComparison {
            try await with(people: 1) { try await spread($0, &figures) }
        } else {
            for count in [people / 10, people] { try await compare(count, &figures) }
        }
        print(
            figures.table(
                title:
                    "poll: \(people) people, \(entries) records each, \(nodes) nodes; medians of \(rounds) rounds, on "
                    + BenchCluster.place))
        if !noComparison { tellComparison(figures) }
        tellProjects(figures)
    }

    /// Of one audience it is the time that counts: it is not to grow with the people. Of many, how much of it is the
    /// writing itself.
    private func tellProjects(_ figures: BenchFigures) {
        let one = figures.median("project for 1 audiences")
        print(BenchFigures.ratio("a project for one audience of \(people) people, ms", one, aim: 5, isAtMost: true))
        guard let most = Self.audienceCounts.last(where: { $0 <= people }), most > 1 else { return }
        let name = "project for \(most) audiences"
        print(
            BenchFigures.ratio(
                "a \(name) / written alone", figures.median("\(name), written alone") / figures.median(name),
                aim: 0.45))
    }

    private func tellComparison(_ figures: BenchFigures) {
        let name = "\(people) people"
        print(
            BenchFigures.ratio(
                "comparing / reading alone",
                figures.median("\(name), compared") / figures.median("\(name), read alone"), aim: 2, isAtMost: true))
        let first = figures.median("\(name), compared first") / figures.median("\(name), read alone")
        print(BenchFigures.ratio("the same after a worker has started", first, aim: 2, isAtMost: true))
        print(
            BenchFigures.ratio(
                "objects written when nothing changed", figures.median("\(name), written"), aim: 0, isAtMost: true))
        print(
            BenchFigures.ratio(
                "poller's memory, MB", figures.median("\(name), poller's memory"), aim: 150, isAtMost: true))
        let growth =
            figures.median("\(name), poller's memory") / figures.median("\(people / 10) people, poller's memory")
        print("  poller's memory, \(people) people / \(people / 10) people: \(BenchFigures.text(growth))")
    }

    private func compare(_ count: Int, _ figures: inout BenchFigures) async throws {
        print("\(count) people: loading")
        try await with(people: count) { bench in
            try await bench.initialise()
            let name = "\(count) people"
            print("\(name): the first run writes everything")
            figures.add("\(name), first run", "s", try await bench.run().inSeconds)
            try await bench.storeEntries()
            print("\(name): the worker compares them for the first time")
            figures.add("\(name), compared first", "s", try await bench.run().inSeconds)
            for round in 1...rounds {
                print("\(name): round \(round) of \(rounds)")
                figures.add("\(name), read alone", "s", try await bench.read().inSeconds)
                let before = try await bench.position()
                figures.add("\(name), compared", "s", try await bench.run().inSeconds)
                figures.add("\(name), written", "positions", Double(try await bench.position() - before))
            }
            figures.add("\(name), poller's memory", "MB", try bench.memory())
            if count == people { try await spread(bench, &figures) }
        }
    }

    private func with(people: Int, _ body: (BenchPolls) async throws -> Void) async throws {
        let bench = try await BenchPolls(people: people, entries: entries, nodes: nodes)
        do { try await body(bench) } catch {
            await bench.stop()
            throw error
        }
        await bench.stop()
    }

    private func spread(_ bench: BenchPolls, _ figures: inout BenchFigures) async throws {
        for count in Self.audienceCounts where count <= people {
            let nodes = count > Self.wholeTreesMax ? max(nodes / Self.wholeTreesMax, 2) : nodes
            print("\(count) audiences of \(nodes) nodes")
            let (people, rounds, conninfo) = (people, rounds, bench.cluster.conninfo)
            let times = try await bench.pool.run { connection in
                let rows = try connection.run(
                    "INSERT INTO realm.environment (name) VALUES (\("audiences-\(count)")) RETURNING id")
                var audiences = try BenchAudiences(
                    audiences: count, people: people, nodes: nodes,
                    environment: try rows[0].decode(EnvironmentID.self), conninfo: conninfo)
                try audiences.prepare()
                var times: [(added: Duration, alone: Duration)] = []
                for round in 1...rounds {
                    times.append((try audiences.addProject(round), try audiences.insert(round)))
                }
                return times
            }
            for time in times {
                figures.add("project for \(count) audiences", "ms", time.added.inSeconds * 1_000)
                figures.add("project for \(count) audiences, written alone", "ms", time.alone.inSeconds * 1_000)
            }
        }
    }
}
