import ArgumentParser
import Catalogues
import Essentials
import Foundation
import HTTPClient
import LocalCluster
import Model
import Postgres

/// `workbench kill-test`: the demo, while everything it needs is killed and frozen at random moments.
struct KillTestCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "kill-test",
        abstract: "The demo with two instances of every service while parts are killed and frozen at random moments.",
        discussion: """
            Runs a PostgreSQL, stand-ins and services of its own. They, but for the back end and the identity \
            provider, are killed with signal 9 or stopped for a while; at the end every device's copy, its realm and \
            the back end's record must agree, entry by entry. The exit status is 1 when they do not.
            """)

    @Option(help: "The folder with real data, as the demo takes it; without it a small organisation is generated.")
    var data: String?
    @Option(help: "How many kills and freezes. (default: 20; 100 with --data)") var kills: Int?
    @Option(help: "The seed of an earlier run, to repeat its kills; printed at the start of each run.")
    var seed: UInt64?
    @Option(help: "How many seconds a part is frozen at most. (default: 15; 120 with --data)") var freeze: Int?

    func validate() throws {
        guard (1...10_000).contains(kills ?? 1) else { throw ValidationError("--kills is 1…10000") }
        guard (0...3_600).contains(freeze ?? 0) else { throw ValidationError("--freeze is 0…3600 seconds") }
        if let data, !FileManager.default.fileExists(atPath: data) {
            throw ValidationError("--data \(data): there is no such folder")
        }
    }

    func run() async throws {
        let seed = seed ?? .random(in: 1...999_999)
        print("kills with devices: seed \(seed)")
        let test = KillTest(
            data: data, killCount: kills ?? (data == nil ? 20 : 100), seed: seed,
            freezeMax: .seconds(freeze ?? (data == nil ? 15 : 120)))
        print(try await test.run())
    }
}

/// One run of the kill test.
struct KillTest: Sendable {
    /// The folder with real data; `nil`: a small organisation is generated.
    let data: String?
    let killCount: Int
    let seed: UInt64
    let freezeMax: Duration

    private static let pause = Duration.milliseconds(1_500)
    private static let beginMax = Duration.seconds(300)
    private static let pollsMax = Duration.seconds(300)
    /// How often everybody is polled at least after the last kill.
    private static let pollCountMin: Int64 = 3

    /// - Returns: What the demo said at its end.
    /// - Throws: `ClusterFailure` when devices, realms and the back end differ, or when that cannot be told.
    func run() async throws -> String {
        let cluster = try await LocalCluster("kills", options)
        do {
            let said = try await run(on: cluster)
            await cluster.stop()
            return said
        } catch {
            await cluster.tell(of: options.services)
            await cluster.stop()
            throw error
        }
    }

    /// Two instances of every service.
    private var options: LocalCluster.Options {
        var options = LocalCluster.Options.quick
        options.services = LocalCluster.Part.services.flatMap { [$0, $0.second] }
        options.hasCompass = true
        // The demo's entries are some years old.
        options.variables[.poller]?["FIELDPOST_POLLER_ENTRY_DAYS"] = "3660"
        // A few people's entries are to be on their way as long as it takes to kill everything several times.
        if data == nil { options.variables[.submitter]?["FIELDPOST_SUBMITTER_INFLIGHT_MAX"] = "2" }
        return options
    }

    private func run(on cluster: LocalCluster) async throws -> String {
        let size = data.map { ["--data", $0, "--time-limit", "3000"] } ?? ["--people", "6", "--seed", "\(seed)"]
        try await setLatency(data == nil ? 1_000 : 500, on: cluster)
        let demo = try cluster.startCommand(
            [
                "demo", "--gateway", cluster.gatewayURL, "--identity", cluster.identityURL, "--sap", cluster.sapURL,
                "--compass", cluster.compassURL, "--database", cluster.conninfo,
            ] + size, of: "workbench", log: "demo")
        try await wait("entries are on their way", within: Self.beginMax) {
            !demo.isRunning || demo.logTail(bytesMax: 500).contains("entries on their way")
        }
        let environment = data == nil ? "demo" : "tock"
        try await cluster.runCommand(["environment", "edit", environment, "--poll-interval", "5"])
        let killer = killer(on: cluster)
        try await killer.kill(killCount)
        guard demo.isRunning else {
            throw ClusterFailure("the demo ended before \(killCount) kills: \(demo.logTail())")
        }
        try await setLatency(0, on: cluster)
        try await wait("the demo ends", within: .seconds(data == nil ? 600 : 3_000)) {
            try killer.startWhatEnded()
            return !demo.isRunning
        }
        let said = demo.logTail(bytesMax: 20_000)
        guard demo.end == .exited(status: 0), said.contains("verdict: no differences") else {
            throw ClusterFailure(said)
        }
        let last = try cluster.lastRunOfEverybody()
        try await wait("everybody is polled \(Self.pollCountMin) times", within: Self.pollsMax) {
            try killer.startWhatEnded()
            return try cluster.lastRunOfEverybody() >= last + Self.pollCountMin
        }
        try await cluster.expectConsistent()
        return said
    }

    private func killer(on cluster: LocalCluster) -> Killer {
        Killer(
            cluster: cluster, parts: options.services + [.database, .broker], seed: seed, pause: Self.pause,
            freezeMax: freezeMax)
    }

    private func setLatency(_ milliseconds: Int, on cluster: LocalCluster) async throws {
        let client = Client()
        defer { client.shutDown() }
        _ = try await SandboxSAP(client: client, url: cluster.sapURL).setSwitches(#"{"latencyMs":\#(milliseconds)}"#)
    }
}

extension LocalCluster {
    fileprivate func lastRunOfEverybody() throws -> Int64 {
        var connection = try Connection(conninfo)
        return try connection.run(KillTest.lastRunOfEverybody)[0].decode(Int64.self)
    }
}

extension KillTest {
    /// The newest run that polled all people: all together by the poll of changes, where the back end reports or
    /// lists them; otherwise each by a poll of their own. Where there is a poll of changes, the others are written for
    /// full comparisons only. Rows: one number.
    static let lastRunOfEverybody: Statement = """
        SELECT coalesce(max(run) FILTER (WHERE poll_id = \(RealmContents.pollID(of: Poll.ofChanges))), min(run), 0)
        FROM poll.finished
        """
}
