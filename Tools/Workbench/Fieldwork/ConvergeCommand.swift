import ArgumentParser
import Essentials
import Foundation
import LocalCluster
import ServiceRuntime

/// `workbench converge`: people do at random what can be done with teams, tasks, positions and shares, while parts are
/// killed; afterwards everybody sees what they are to see.
struct ConvergeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "converge",
        abstract: "Random work on teams, tasks, positions and shares, with kills; everybody ends with what is theirs.",
        discussion: """
            Runs a PostgreSQL, stand-ins and two instances of every service it needs. Each seed is an environment of \
            its own with people who work on devices, offline too. At rest copies and devices are compared with a plain \
            reading of what people wrote. The exit status is 1 when they differ.
            """)

    @Option(help: "How many seeds.") var seeds = 20
    @Option(help: "The first seed; the others follow it. A random one unless given.") var first: UInt64?
    @Option(help: "How many people each environment has, each with a device.") var people = 8
    @Option(help: "How many things are done in each environment.") var steps = 400
    @Option(help: "How many environments are worked in at a time.") var parallel = 4
    @Option(help: "How many kills and freezes while each of them is worked in; 0: none.") var kills = 6

    func validate() throws {
        guard (1...100_000).contains(seeds) else { throw ValidationError("--seeds is 1…100000") }
        guard (2...1_000).contains(people) else { throw ValidationError("--people is 2…1000") }
        guard (1...1_000_000).contains(steps) else { throw ValidationError("--steps is 1…1000000") }
        guard (1...64).contains(parallel) else { throw ValidationError("--parallel is 1…64") }
        guard (0...10_000).contains(kills) else { throw ValidationError("--kills is 0…10000") }
    }

    func run() async throws {
        let first = first ?? .random(in: 1...999_999)
        print("converge: seeds \(first) to \(first + UInt64(seeds) - 1)")
        let run = ConvergeRun(
            seeds: (0..<seeds).map { first + UInt64($0) }, peopleCount: people, stepCount: steps, parallelMax: parallel,
            killCount: kills)
        let differing = try await run.run()
        guard differing.isEmpty else {
            let seeds = differing.map { "\($0)" }.joined(separator: ", ")
            print("verdict: differences with the seeds \(seeds)")
            throw ExitCode.failure
        }
        print("verdict: no differences (copies = what was written, every device = what its person may see)")
    }
}
