import ArgumentParser
import Essentials
import FoundationEssentials
import LocalCluster
import Postgres

/// Latency of a manager's tasks to a member of their team while another team with many tasks is deleted, compared with
/// the latency before.
struct BenchTasksDeletion: BenchScenario {
    static let configuration = CommandConfiguration(
        commandName: "tasks-deletion",
        abstract: "Measure the latency of tasks while another team is deleted.",
        discussion: """
            A manager creates tasks of a team, first alone, then while task-fan-out removes the tasks of another \
            team that was deleted. The time of the deletion ends with the last copy; up to a quarter of a second of \
            the tasks is after it.
            """)

    @OptionGroup var options: BenchOptions

    @Option(help: "Tasks per second.") var rate = 100
    @Option(help: "Duration of the tasks before the deletion, in seconds.") var seconds = 6
    @Option(help: "Tasks of the deleted team.") var deleted = 10_000

    func validate() throws {
        try BenchOptions.check(rate, in: 1...10_000, "--rate")
        try BenchOptions.check(seconds, in: 1...3_600, "--seconds")
        try BenchOptions.check(deleted, in: 1...1_000_000, "--deleted")
    }

    static let targets =
        [50, 99].map { percent in
            BenchTarget(
                name: "during the deletion / before, p\(percent)", figure: "during the deletion, p\(percent)",
                reference: "before, p\(percent)", limit: .atMost(1.5))
        } + [BenchTarget(name: "deletion", figure: "deletion")]

    private static let copiesMax = Duration.seconds(300)
    /// Tasks per second of the team that is deleted.
    private static let fillRate = 2_000

    var installation: BenchInstallation.Configuration {
        BenchInstallation.Configuration(services: [.relay, .gateway, .taskFanOut], peopleCount: 3)
    }

    func setUp(_ installation: BenchInstallation) async throws -> BenchManager { try await BenchManager(installation) }

    func measure(
        _ manager: BenchManager, on installation: BenchInstallation, _ report: inout BenchReport
    ) async throws {
        let other = try await manager.addTeam(member: 2)
        try await manager.send(deleted, perSecond: Self.fillRate, to: other, member: 2)
        try await wait("all copies exist", until: deleted, of: other, on: installation)
        try await installation.pool.run { try $0.runScript("CHECKPOINT") }

        try await manager.send(rate * seconds, perSecond: rate)
        report.add("before, own device", try await manager.take(manager.own))
        report.add("before", try await manager.take(manager.member))

        try await manager.delete(other)
        let start = ContinuousClock.now
        async let deletion = {
            try await wait("no copy is left", until: 0, of: other, on: installation)
            return ContinuousClock.now - start
        }()
        repeat {
            try await manager.send(max(1, rate / 4), perSecond: rate)
        } while try await count(of: other, on: installation) > 0
        report.add("during the deletion, own device", try await manager.take(manager.own))
        report.add("during the deletion", try await manager.take(manager.member))
        report.add("deletion", "s", try await deletion.inSeconds)
    }

    private func count(of team: UUID, on installation: BenchInstallation) async throws -> Int64 {
        try await installation.pool.run { connection in
            try connection.run("SELECT count(*) FROM task.copy WHERE team_id = \(team)")[0].value(0)
        }
    }

    private func wait(
        _ condition: String, until count: Int, of team: UUID, on installation: BenchInstallation
    ) async throws {
        try await waitUntil(condition, within: Self.copiesMax, interval: .milliseconds(50)) {
            try await self.count(of: team, on: installation) == Int64(count)
        }
    }
}
