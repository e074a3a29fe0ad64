import ArgumentParser
import Catalogues
import Foundation
import LocalCluster
import Model
import Postgres

/// `workbench kill-test`: the demo on two instances of every service, with kills and freezes.
struct KillTestCommand: ScenarioCommand {
    static let configuration = CommandConfiguration(
        commandName: "kill-test",
        abstract: "Run the demo while components are killed and frozen.",
        discussion: """
            Starts a cluster with two instances of every service. At random moments a service, PostgreSQL or the \
            broker is killed with signal 9 or stopped for a while. At the end every device's copy, its realm and the \
            back end's record must agree for every entry; otherwise the exit status is 1.
            """)

    @Option(help: "Folder with real data; 6 people are generated unless given.")
    var data: String?
    @Option(help: "Number of kills and freezes. (default: 20; 100 with --data)") var kills: Int?
    @Option(help: "Seed of an earlier run, to repeat its kills; each run prints its seed.")
    var seed: UInt64?
    @Option(help: "Maximum seconds of a freeze. (default: 15; 120 with --data)") var freeze: Int?
    @OptionGroup var output: ScenarioOptions

    private static let pause = Duration.milliseconds(1_500)
    private static let pollsMax = Duration.seconds(300)
    /// Minimum number of polls of every person after the last kill.
    private static let pollCountMin: Int64 = 3

    func validate() throws {
        guard (1...10_000).contains(kills ?? 1) else { throw ValidationError("--kills is 1…10000") }
        guard (0...3_600).contains(freeze ?? 0) else { throw ValidationError("--freeze is 0…3600 seconds") }
        if let data, !FileManager.default.fileExists(atPath: data) {
            throw ValidationError("--data \(data): there is no such folder")
        }
    }

    /// Two instances of every service.
    private var options: LocalCluster.Options {
        var options = LocalCluster.Options.quick
        options.services = LocalCluster.Part.services.flatMap { [$0, $0.second] }
        options.emulators.append(.compass)
        // The demo's entries are some years old.
        options.variables[.poller]?["FIELDPOST_POLLER_ENTRY_DAYS"] = "3660"
        // The entries of a few people must be in flight during all kills.
        if data == nil { options.variables[.submitter]?["FIELDPOST_SUBMITTER_INFLIGHT_MAX"] = "2" }
        return options
    }

    func report() async throws -> ScenarioReport {
        let seed = seed ?? .random(in: 1...999_999)
        print("kill-test: seed \(seed)")
        return try await ScenarioStage.run("kills", options) { try await run(seed: seed, on: $0) }
    }

    private func run(seed: UInt64, on stage: ScenarioStage) async throws -> ScenarioReport {
        let (cluster, hasData, count) = (stage.cluster, data != nil, kills ?? (data == nil ? 20 : 100))
        let size = data.map { ["--data", $0, "--time-limit", "3000"] } ?? ["--people", "6", "--seed", "\(seed)"]
        try await stage.sap.setSwitches(#"{"latencyMs":\#(hasData ? 500 : 1_000)}"#)
        let demo = try await stage.startDemo(size, environment: hasData ? "tock" : "demo")
        defer { demo.kill9() }
        let killer = Killer(
            cluster: cluster, parts: cluster.services + [.database, .broker], seed: seed, pause: Self.pause,
            freezeMax: .seconds(freeze ?? (hasData ? 120 : 15)))
        try await killer.kill(count)
        guard demo.isRunning else {
            throw ClusterFailure("the demo ended before \(count) kills: \(demo.logTail())")
        }
        try await stage.sap.setSwitches(#"{"latencyMs":0}"#)
        try await waitUntil("the demo has ended", within: .seconds(hasData ? 3_000 : 600)) {
            try killer.startWhatEnded()
            return !demo.isRunning
        }
        var report = ScenarioReport()
        report.add("kills and freezes", count)
        if let failure = ScenarioStage.failure(of: demo) {
            report.differences.append(failure)
            return report
        }
        print(demo.logTail(bytesMax: 20_000))
        let last = try Self.lastRun(on: cluster)
        try await waitUntil("every person was polled \(Self.pollCountMin) times", within: Self.pollsMax) {
            try killer.startWhatEnded()
            return try Self.lastRun(on: cluster) >= last + Self.pollCountMin
        }
        return report
    }

    private static func lastRun(on cluster: LocalCluster) throws -> Int64 {
        var connection = try Connection(cluster.conninfo)
        return try connection.run(lastRunOfEverybody)[0].decode(Int64.self)
    }

    /// The newest run in which every person was polled: by the poll of changes, if the back end reports or lists
    /// changes; otherwise by a poll per person. With a poll of changes, the others are written by full comparisons
    /// only. Rows: one number.
    static let lastRunOfEverybody: Statement = """
        SELECT coalesce(max(run) FILTER (WHERE poll_id = \(RealmContents.pollID(of: Poll.changesPerson))), min(run), 0)
        FROM poll.finished
        """
}
