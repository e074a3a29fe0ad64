import LocalCluster
import Synchronization

/// Demos, one after the other, each in an environment of its own.
final class RehearsalDemos: Sendable {
    private struct State {
        var count = 0
        var areActive = false
        var hasFailed = false
        var isLast = false
    }

    private let stage: ScenarioStage
    private let people: Int
    private let state = Mutex(State())

    init(stage: ScenarioStage, people: Int) {
        self.stage = stage
        self.people = people
    }

    /// Whether the first demo's devices have begun.
    var areActive: Bool { state.withLock { $0.areActive } }
    /// Whether a demo has failed; no further demo is started then.
    var hasFailed: Bool { state.withLock { $0.hasFailed } }
    /// The number of demos that ended without differences.
    var count: Int { state.withLock { $0.count } }

    func endAfterCurrent() { state.withLock { $0.isLast = true } }

    /// - Returns: The failure of a demo, if any.
    func run() async -> [String] {
        for number in 1... {
            let failure: String?
            do { failure = try await run(number) } catch { failure = "\(error)" }
            if let failure {
                state.withLock { $0.hasFailed = true }
                return ["demo \(number): \(failure)"]
            }
            let isLast = state.withLock { state in
                state.count = number
                return state.isLast
            }
            if isLast { break }
        }
        return []
    }

    private func run(_ number: Int) async throws -> String? {
        let environment = "demo-\(number)"
        let demo = try await stage.startDemo(
            ["--people", "\(people)", "--seed", "\(number)"], environment: environment)
        defer { demo.kill9() }
        state.withLock { $0.areActive = true }
        try await waitUntil("\(environment) has ended", within: .seconds(900)) { !demo.isRunning }
        // Polls of earlier environments must not become the load.
        try await stage.poll(environment, every: 86_400)
        return ScenarioStage.failure(of: demo)
    }
}
