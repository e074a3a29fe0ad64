import LocalCluster

/// Demos, one after the other, each in an environment of its own.
actor RehearsalDemos {
    private let stage: ScenarioStage
    private let people: Int
    /// The number of demos that ended without differences.
    private(set) var count = 0
    /// Whether a demo has failed; no further demo is started then.
    private(set) var hasFailed = false
    private var areActive = false
    private var isLast = false

    init(stage: ScenarioStage, people: Int) {
        self.stage = stage
        self.people = people
    }

    /// Whether the first demo's devices have begun, or it has failed.
    var hasStarted: Bool { areActive || hasFailed }

    func endAfterCurrent() { isLast = true }

    /// - Returns: The failure of a demo, if any.
    func run() async -> [String] {
        while !isLast {
            let failure: String?
            do { failure = try await run(count + 1) } catch { failure = "\(error)" }
            if let failure {
                hasFailed = true
                return ["demo \(count + 1): \(failure)"]
            }
            count += 1
        }
        return []
    }

    private func run(_ number: Int) async throws -> String? {
        let environment = "demo-\(number)"
        let demo = try await stage.startDemo(
            ["--people", "\(people)", "--seed", "\(number)"], environment: environment)
        defer { demo.kill9() }
        areActive = true
        try await waitUntil("\(environment) has ended", within: .seconds(900)) { !demo.isRunning }
        // Polls of earlier environments must not become the load.
        try await stage.poll(environment, every: 86_400)
        return ScenarioStage.failure(of: demo)
    }
}
