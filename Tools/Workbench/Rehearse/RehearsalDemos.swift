import Essentials
import Foundation
import LocalCluster
import Synchronization

/// Demos, one after the other, each in an environment of its own.
final class RehearsalDemos: Sendable {
    private static let demoMax = Duration.seconds(900)
    /// How often an environment's back end is asked for changes while its demo runs, in seconds, and afterwards: what
    /// is over must not become the load.
    private static let pollInterval = "5"
    private static let pollIntervalAfter = "86400"

    private let cluster: LocalCluster
    private let people: Int
    private let isLast = Mutex(false)
    private let state = Mutex(State())

    private struct State {
        var areOnTheirWay = false
        var hasFailed = false
    }

    init(cluster: LocalCluster, people: Int) {
        self.cluster = cluster
        self.people = people
    }

    /// Whether the first demo's devices have begun.
    var areOnTheirWay: Bool { state.withLock { $0.areOnTheirWay } }
    /// Whether a demo ended otherwise than it should: no more of them are begun.
    var hasFailed: Bool { state.withLock { $0.hasFailed } }

    /// The one that runs is the last.
    func endAfterThis() { isLast.withLock { $0 = true } }

    /// - Returns: A line for each: its verdict, or what it said.
    func run() async -> [String] {
        var said: [String] = []
        for number in 1... {
            let line: String
            do { line = try await run(number) } catch { line = "\(error)" }
            said.append("demo \(number): \(line)")
            if !Self.isGood(line) {
                state.withLock { $0.hasFailed = true }
                break
            }
            if isLast.withLock({ $0 }) { break }
        }
        return said
    }

    /// Whether a line says that a demo ended as it should.
    static func isGood(_ line: String) -> Bool { line.contains("no differences") }

    private func run(_ number: Int) async throws -> String {
        let environment = "demo-\(number)"
        let demo = try cluster.startCommand(
            [
                "demo", "--gateway", cluster.gatewayURL, "--identity", cluster.identityURL, "--sap", cluster.sapURL,
                "--compass", cluster.compassURL, "--database", cluster.conninfo, "--environment", environment,
                "--people", "\(people)", "--seed", "\(number)",
            ], of: "workbench", log: environment)
        defer { demo.kill9() }
        try await wait("\(environment) begins", within: Self.demoMax) {
            !demo.isRunning || demo.logTail(bytesMax: 500).contains("entries on their way")
        }
        try await cluster.runCommand(["environment", "edit", environment, "--poll-interval", Self.pollInterval])
        state.withLock { $0.areOnTheirWay = true }
        try await wait("\(environment) ends", within: Self.demoMax) { !demo.isRunning }
        try await cluster.runCommand(["environment", "edit", environment, "--poll-interval", Self.pollIntervalAfter])
        let said = demo.logTail(bytesMax: 20_000)
        guard demo.end == .exited(status: 0) else { return said }
        return said.split(separator: "\n").last { $0.contains("verdict") }.map(String.init) ?? said
    }
}
