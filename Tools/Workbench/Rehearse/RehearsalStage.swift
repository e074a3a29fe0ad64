import Essentials
import FoundationEssentials
import HTTPClient
import LocalCluster
import Model

/// Where acts are done, with those who watch.
struct RehearsalStage: Sendable {
    let cluster: LocalCluster
    let devices: DeviceWatch
    let lag: LagWatch
    let demos: RehearsalDemos
    let client: Client
    let console: DemoConsole

    private static let closedMax = Duration.seconds(180)

    /// Does something to a part, and waits until all goes as before: nobody is behind, and devices hear of new changes.
    func act(
        _ act: RehearsedStep.Act, on part: String, _ body: (inout RehearsedStep) async throws -> Void
    ) async throws -> RehearsedStep {
        var step = RehearsedStep(part: part, act: act)
        _ = (devices.takeWaits(), lag.takeLongest())
        try await body(&step)
        let done = ContinuousClock.now
        try await untilClosed()
        step.closed = (ContinuousClock.now - done).inSeconds
        let before = devices.counts
        try await wait("devices hear of changes again", within: Self.closedMax) {
            devices.counts.seen > before.seen && devices.counts.shared > before.shared
        }
        step.waits = devices.takeWaits()
        step.lagMax = lag.takeLongest()
        let ready = step.ready.map { ", ready after \(RehearsalReport.text($0)) s" } ?? ""
        console.say("\(part) \(act.rawValue)\(ready), nobody behind after \(RehearsalReport.text(step.closed)) s more")
        return step
    }

    /// Waits until instances of a service have all partitions of its topics between them, and each has some.
    ///
    /// A release that does not tell what it has is believed to have it.
    func untilShared(_ instances: [LocalCluster.Part], of service: ServiceDescription?) async throws {
        let total = service?.topics.map(\.partitions).reduce(0, +) ?? 0
        guard total > 0 else { return }
        let deadline = ContinuousClock.now + Self.closedMax
        while true {
            var told: [Int?] = []
            for part in instances { told.append(await partitions(of: part)) }
            let counts = told.compactMap(\.self)
            if counts.isEmpty || counts.reduce(0, +) == total && !counts.contains(0) { return }
            guard .now < deadline else {
                throw ClusterFailure("\(instances[0].name): \(told) of \(total) partitions after \(Self.closedMax)")
            }
            try await Task.sleep(for: .milliseconds(50))
        }
    }

    /// - Returns: `nil` when it does not tell.
    private func partitions(of part: LocalCluster.Part) async -> Int? {
        let request = Request(cluster.adminURL(part) + "/metrics", connectMax: .seconds(2), totalMax: .seconds(2))
        guard let response = try? await client.send(request), response.status == 200 else { return 0 }
        let values = String(decoding: response.body, as: UTF8.self).split(separator: "\n")
            .filter { $0.hasPrefix("fieldpost_partitions{") }
            .compactMap { $0.split(separator: " ").last.flatMap { Double($0) } }
        return values.isEmpty ? nil : Int(values.reduce(0, +))
    }

    /// Waits until nobody is behind, as of now.
    func untilClosed() async throws {
        let now = ContinuousClock.now
        try await wait("nobody is behind", within: Self.closedMax) { lag.isClosed(since: now) }
    }
}

extension RehearsalReport {
    mutating func take(_ step: RehearsedStep) { steps.append(step) }
}
