import ArgumentParser
import Essentials
import LocalCluster

/// `workbench hosts`: an installation on several hosts, with faults of hosts and of the network.
struct HostsCommand: ScenarioCommand {
    static let configuration = CommandConfiguration(
        commandName: "hosts",
        abstract: "Inject faults of hosts and of their network, and check that all data converge.",
        discussion: """
            Needs root and namespaces of its own: start it with deploy/host-test. Each process has a host of its own: \
            two gateways, two relays, three of each worker, PostgreSQL's primary and standby with Patroni, etcd, \
            PgBouncer and the broker. For each fault and seed, the people of an environment work on devices at both \
            gateways, as in `converge`. The exit status is 1 if data differ afterwards.
            """)

    @Option(help: "Fault to inject; may be repeated. (default: all)") var fault: [HostFault] = []
    @Option(help: "Number of seeds for each fault.") var seeds = 1
    @Option(help: "First seed; the others follow it. Random unless given.") var first: UInt64?
    @OptionGroup var output: ScenarioOptions

    /// Each second person has a device with an SDK of PowerSync; both gateways serve both.
    private static let peopleCount = 4
    private static let stepCount = 200
    private static let pause = Duration.milliseconds(300)
    private static let settleMax = Duration.seconds(240)
    /// Time of work before the fault.
    private static let before = Duration.seconds(5)
    private static let recoveryMax = Duration.seconds(180)
    private static let columns = ["fault s", "accepted s", "seen s", "shared s", "recovery s", "differences"]

    func validate() throws {
        guard (1...1_000).contains(seeds) else { throw ValidationError("--seeds is 1…1000") }
    }

    func report() async throws -> ScenarioReport {
        let first = first ?? .random(in: 1...999_999)
        print("hosts: first seed \(first)")
        let faults = (fault.isEmpty ? HostFault.allCases : fault).flatMap { Array(repeating: $0, count: seeds) }
        return try await HostStage.run { hosts in
            var report = ScenarioReport(columns: Self.columns)
            for (index, fault) in faults.enumerated() {
                let seed = first + UInt64(index)
                let (step, differences) = try await row(fault, seed: seed, on: hosts)
                report.steps.append(step)
                report.differences += differences.prefix(20).map { "\(step.name): \($0)" }
                let values = Self.columns.map { "\($0) \(ScenarioReport.text(step.values[$0] ?? 0))" }
                hosts.stage.console.log("\(step.name): " + values.joined(separator: ", "))
                differences.prefix(5).forEach { hosts.stage.console.log("  \($0)") }
            }
            report.differences += try await hosts.stage.cluster.differences().map { "fieldpost check: \($0)" }
            if !report.differences.isEmpty { await hosts.printDiagnostics() }
            return report
        }
    }

    private func row(
        _ fault: HostFault, seed: UInt64, on hosts: HostStage
    ) async throws -> (ScenarioReport.Step, [String]) {
        let run = ConvergeRun(
            seed: seed, peopleCount: Self.peopleCount, stepCount: Self.stepCount, settleMax: Self.settleMax,
            stage: hosts.stage, gateways: hosts.gateways, pause: Self.pause,
            lostPositions: hosts.lostPositions)
        async let work = run.run()
        try await Task.sleep(for: Self.before)
        _ = hosts.watch.takeWaits()
        let end = try await fault.inject(on: hosts)
        let recovery = try await hosts.watch.recovery(since: end, within: Self.recoveryMax)
        let waits = hosts.watch.takeWaits()
        try await hosts.database.repair()
        let differences = try await work
        var step = ScenarioReport.Step(name: "\(fault.rawValue), seed \(seed)")
        step.values = [
            "fault s": Double(fault.seconds), "recovery s": recovery.inSeconds,
            "differences": Double(differences.count),
        ]
        for name in ["accepted", "seen", "shared"] { step.values["\(name) s"] = waits[name] }
        return (step, differences)
    }
}
