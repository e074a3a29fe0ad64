import Essentials
import LocalCluster
import Model

/// The operations on services, with their measured values in seconds.
struct RehearsalOperations: Sendable {
    let stage: ScenarioStage
    let devices: DeviceWatch
    let lag: LagWatch
    let instanceCount: Int
    /// Time for which a service is stopped.
    let stopTime: Duration
    /// The executables that replace those of the cluster; `nil`: the same.
    let build: String?

    typealias Operation = @Sendable (_ values: inout [String: Double]) async throws -> Void

    static let columns = ["ended", "ready", "accepted", "seen", "shared", "lag", "drained"]
    private static let endMax = Duration.seconds(60)
    private static let drainedMax = Duration.seconds(180)

    private var cluster: LocalCluster { stage.cluster }

    /// The operations in their order: with another build, the schema is migrated before the first replacement.
    func all(on parts: [LocalCluster.Part]) -> [(step: String, Operation)] {
        var steps: [(step: String, Operation)] = []
        func add(_ step: String, _ operation: @escaping Operation) { steps.append((step, operation)) }
        for part in parts {
            add("\(part.name) stopped") { values in
                values["ended"] = try await end([part])
                try await Task.sleep(for: stopTime)
                values["ready"] = try await start([part], of: nil)
            }
        }
        if let build {
            add("schema migrated") { values in
                values["ready"] = try await timed {
                    try await cluster.runCommand(["migrate", "--schema", LocalCluster.schemaFolder], from: build)
                }
            }
        }
        for part in parts {
            let others = (2...instanceCount).map { part.instance($0) }
            add("\(part.name) replaced") { values in
                values["ended"] = try await end([part])
                values["ready"] = try await start([part], of: build)
            }
            add("\(part.name) scaled") { values in
                values["ready"] = try await start(others, alongside: [part], of: build)
                try await waitUntilDrained()
                values["ended"] = try await end(others)
                try await waitUntilAssigned([part])
            }
            add("\(part.name) killed") { values in
                await cluster.kill9(part)
                values["ready"] = try await start([part], of: build)
            }
        }
        return steps
    }

    /// Performs an operation, and waits until no group lags and the watched devices receive changes.
    func perform(_ name: String, _ operation: Operation) async throws -> ScenarioReport.Step {
        var step = ScenarioReport.Step(name: name)
        _ = (devices.takeWaits(), lag.takeLongest())
        try await operation(&step.values)
        let done = ContinuousClock.now
        try await waitUntilDrained()
        step.values["drained"] = (ContinuousClock.now - done).inSeconds
        let before = devices.counts
        try await waitUntil("the watched devices receive changes", within: Self.drainedMax) {
            devices.counts.seen > before.seen && devices.counts.shared > before.shared
        }
        step.values.merge(devices.takeWaits()) { $1 }
        step.values["lag"] = lag.takeLongest()
        let ready = step.values["ready"].map { ", ready after \(ScenarioReport.text($0)) s" } ?? ""
        stage.console.log("\(name)\(ready), drained after \(ScenarioReport.text(step.values["drained"] ?? 0)) s")
        return step
    }

    /// Stops instances at once.
    ///
    /// - Returns: The time until the last one had ended.
    private func end(_ parts: [LocalCluster.Part]) async throws -> Double {
        try await timed {
            try await concurrentMap(parts) { part in
                let end = await cluster.terminate(part, within: Self.endMax)
                guard end == .exited(status: 0) else {
                    let how = end.map { "ended with \($0)" } ?? "did not end within \(Self.endMax)"
                    throw ClusterFailure("\(part.name) got SIGTERM and \(how)")
                }
            }
        }
    }

    /// Starts instances of a service, and waits until each is ready and has partitions.
    private func start(
        _ parts: [LocalCluster.Part], alongside others: [LocalCluster.Part] = [], of executables: String?
    ) async throws -> Double {
        try await timed {
            for part in parts { try cluster.start(part, of: executables) }
            for part in parts { try await cluster.waitUntilReady(part) }
            try await waitUntilAssigned(others + parts)
        }
    }

    private func timed(_ body: () async throws -> some Any) async throws -> Double {
        let start = ContinuousClock.now
        _ = try await body()
        return (ContinuousClock.now - start).inSeconds
    }

    /// Waits until instances of a service have all partitions of its topics between them, and each has some.
    ///
    /// Releases without the metric are not waited for.
    private func waitUntilAssigned(_ instances: [LocalCluster.Part]) async throws {
        let total = instances[0].service?.topics.map(\.partitions).reduce(0, +) ?? 0
        guard total > 0 else { return }
        try await waitUntil(
            "\(instances[0].name) has \(total) partitions", within: Self.drainedMax, interval: .milliseconds(50)
        ) {
            let counts = try await concurrentMap(instances) { await partitionCount(of: $0) }.compactMap(\.self)
            return counts.isEmpty || counts.reduce(0, +) == total && !counts.contains(0)
        }
    }

    /// - Returns: `nil` if the release has no such metric; 0 while the service is unavailable.
    private func partitionCount(of part: LocalCluster.Part) async -> Int? {
        guard let metrics = await stage.metrics(of: part) else { return 0 }
        let values = metrics.values(of: "fieldpost_partitions")
        return values.isEmpty ? nil : Int(values.reduce(0, +))
    }

    private func waitUntilDrained() async throws {
        let now = ContinuousClock.now
        try await waitUntil("no group lags", within: Self.drainedMax) { lag.isDrained(since: now) }
    }
}
