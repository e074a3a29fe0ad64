import ArgumentParser
import Essentials
import FoundationEssentials
import LocalCluster

/// Latency of a manager's task to a member of its team, compared with the manager's other device.
struct BenchTasksLive: BenchScenario {
    static let configuration = CommandConfiguration(
        commandName: "tasks-live",
        abstract: "Measure the latency of tasks from a manager to a member of the team.",
        discussion: """
            A manager creates tasks of a team. The manager's other device receives them from the gateway. The \
            member receives the team's copy, after the relay, the broker, task-fan-out and the gateway.
            """)

    @OptionGroup var options: BenchOptions

    @Option(help: "Tasks per second.") var rate = 100
    @Option(help: "Duration of a run's tasks, in seconds.") var seconds = 6

    func validate() throws {
        try BenchOptions.check(rate, in: 1...10_000, "--rate")
        try BenchOptions.check(seconds, in: 1...3_600, "--seconds")
    }

    static let targets = [(50, 3.0), (99, 4.0)].map { percent, limit in
        BenchTarget(
            name: "member / own device, p\(percent)", figure: "member, p\(percent)",
            reference: "own device, p\(percent)", limit: .atMost(limit))
    }

    var installation: BenchInstallation.Configuration {
        BenchInstallation.Configuration(services: [.relay, .gateway, .taskFanOut], peopleCount: 2)
    }

    func setUp(_ installation: BenchInstallation) async throws -> BenchManager { try await BenchManager(installation) }

    func measure(
        _ manager: BenchManager, on installation: BenchInstallation, _ report: inout BenchReport
    ) async throws {
        try await manager.send(rate * seconds, perSecond: rate)
        report.add("own device", try await manager.take(manager.own))
        report.add("member", try await manager.take(manager.member))
    }
}
