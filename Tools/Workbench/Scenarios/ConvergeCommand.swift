import ArgumentParser
import LocalCluster

/// `workbench converge`: random work on teams, tasks, positions, shares and own kinds, with kills.
struct ConvergeCommand: ScenarioCommand {
    static let configuration = CommandConfiguration(
        commandName: "converge",
        abstract: "Run random work with kills, and check that all data converge.",
        discussion: """
            Starts a cluster with two instances of each necessary service. Each seed is an environment whose people \
            work on devices, at times offline. It declares random kinds, in two versions of a schema file. Half of the \
            devices use the PowerSync protocol: they lose streams between two lines, and are killed. When an \
            environment is quiescent, copies and devices are compared with a direct evaluation of what people wrote. \
            The exit status is 1 if they differ.
            """)

    @Option(help: "Number of seeds.") var seeds = 20
    @Option(help: "First seed; the others follow it. Random unless given.") var first: UInt64?
    @Option(help: "People per environment, each with a device.") var people = 8
    @Option(help: "Number of actions per environment.") var steps = 500
    @Option(help: "Number of concurrent environments.") var parallel = 4
    @Option(help: "Kills and freezes per environment; 0: none.") var kills = 6
    @OptionGroup var output: ScenarioOptions

    private static let settleMax = Duration.seconds(300)
    private static let freezeMax = Duration.seconds(4)
    private static let pause = Duration.milliseconds(700)
    private static let services: [LocalCluster.Part] = [.relay, .gateway, .taskFanOut, .locationFanOut, .shareFanOut]

    func validate() throws {
        guard (1...100_000).contains(seeds) else { throw ValidationError("--seeds is 1…100000") }
        guard (2...1_000).contains(people) else { throw ValidationError("--people is 2…1000") }
        guard (1...1_000_000).contains(steps) else { throw ValidationError("--steps is 1…1000000") }
        guard (1...64).contains(parallel) else { throw ValidationError("--parallel is 1…64") }
        guard (0...10_000).contains(kills) else { throw ValidationError("--kills is 0…10000") }
    }

    func report() async throws -> ScenarioReport {
        let first = first ?? .random(in: 1...999_999)
        print("converge: seeds \(first) to \(first + UInt64(seeds) - 1)")
        var options = LocalCluster.Options.quick
        options.services = Self.services.flatMap { [$0, $0.second] }
        return try await ScenarioStage.run("converge", options, devices: people * parallel) { stage in
            let killer = Killer(
                cluster: stage.cluster, parts: stage.cluster.services + [.database, .broker], seed: first,
                pause: Self.pause, freezeMax: Self.freezeMax)
            let killing = Task { [count = kills * seeds / min(parallel, seeds)] in
                try await killer.kill(count)
                while !Task.isCancelled {
                    try killer.startWhatEnded()
                    try await Task.sleep(for: .milliseconds(500))
                }
            }
            defer { killing.cancel() }
            let report = try await run((0..<UInt64(seeds)).map { first + $0 }, on: stage)
            killing.cancel()
            // A kill that failed must not look like a run without differences.
            do { try await killing.value } catch is CancellationError {}
            return report
        }
    }

    private func run(_ seeds: [UInt64], on stage: ScenarioStage) async throws -> ScenarioReport {
        let results = try await concurrentMap(seeds, parallelMax: parallel) { seed in
            let run = ConvergeRun(
                seed: seed, peopleCount: people, stepCount: steps, settleMax: Self.settleMax, stage: stage)
            let differences = try await run.run()
            print("seed \(seed): \(differences.count) differences")
            return differences.prefix(20).map { "seed \(seed): \($0)" }
        }
        var report = ScenarioReport()
        report.differences = results.flatMap(\.self)
        report.add("seeds", seeds.count)
        return report
    }
}
