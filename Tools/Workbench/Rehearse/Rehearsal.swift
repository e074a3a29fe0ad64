import Essentials
import Foundation
import HTTPClient
import LocalCluster
import Model
import Postgres

/// One rehearsal on a cluster of its own.
struct Rehearsal: Sendable {
    /// A build and the schema it was made for.
    struct Release: Sendable {
        let executables: String
        let schemaFolder: String
    }

    /// The services it is done to.
    let parts: [LocalCluster.Part]
    let people: Int
    let instanceCount: Int
    let away: Duration
    /// `nil`: it begins with this build, and each service is replaced by the same.
    let before: Release?

    private static let monitor = LocalCluster.Part(Services.lagMonitor)
    /// What SAP takes for an answer, so that entries are on their way for long.
    private static let latency = Duration.milliseconds(200)
    /// How long a service may take to end once it is asked to.
    private static let endMax = Duration.seconds(60)
    private static let closedMax = Duration.seconds(180)
    /// How long a demo may go on after all is done.
    private static let demoMax = Duration.seconds(900)

    func run() async throws -> RehearsalReport {
        let cluster = try await LocalCluster("rehearse", options)
        do {
            let report = try await run(on: cluster)
            if !report.troubles.isEmpty { await cluster.tell(of: LocalCluster.Part.services) }
            await cluster.stop()
            return report
        } catch {
            await cluster.tell(of: LocalCluster.Part.services)
            await cluster.stop()
            throw error
        }
    }

    /// All services, whichever of them it is done to.
    private var options: LocalCluster.Options {
        var options = LocalCluster.Options.quick
        options.services = LocalCluster.Part.services
        options.idle = parts.flatMap { part in (2...instanceCount).map { part.instance($0) } }
        options.hasCompass = true
        // The demo's entries are some years old.
        options.variables[.poller]?["FIELDPOST_POLLER_ENTRY_DAYS"] = "3660"
        options.variables[Self.monitor, default: [:]]["FIELDPOST_MONITOR_INTERVAL"] = "500ms"
        if let before { (options.executables, options.schemaFolder) = (before.executables, before.schemaFolder) }
        return options
    }

    private func run(on cluster: LocalCluster) async throws -> RehearsalReport {
        var configuration = Client.Configuration()
        configuration.connectionsPerHostMax = 100
        let client = Client(configuration: configuration)
        defer { client.shutDown() }
        let pool = try Pool(cluster.conninfo, size: 1)
        defer { pool.stop() }
        let devices = try await DeviceWatch(on: cluster, client: client, pool: pool)
        let console = DemoConsole()
        console.say("the services run; the first demo begins")
        let lag = LagWatch(Self.monitor, on: cluster, client: client)
        let demos = RehearsalDemos(cluster: cluster, people: people)
        _ = try await SandboxSAP(client: client, url: cluster.sapURL)
            .setSwitches(#"{"latencyMs":\#(Self.latency.milliseconds)}"#)
        let watching = [Task { try await devices.run() }, Task { try await lag.run() }]
        defer { for task in watching { task.cancel() } }
        let working = Task { await demos.run() }
        defer { working.cancel() }
        try await wait("the first demo's entries are on their way", within: Self.demoMax) {
            demos.areOnTheirWay || demos.hasFailed
        }
        var report = RehearsalReport()
        let stage = RehearsalStage(
            cluster: cluster, devices: devices, lag: lag, demos: demos, client: client, console: console)
        try await rehearse(on: stage, &report)
        demos.endAfterThis()
        report.demos = await working.value
        report.troubles += report.demos.filter { !RehearsalDemos.isGood($0) }
        guard report.troubles.isEmpty else { return report }
        let last = devices.counts
        try await wait("what is on its way to the devices that are watched has come", within: Self.closedMax) {
            devices.counts.seen > last.seen && devices.counts.shared > last.shared
        }
        report.noteCount = devices.counts.seen + devices.counts.shared
        try await cluster.expectConsistent()
        return report
    }

    private func rehearse(on stage: RehearsalStage, _ report: inout RehearsalReport) async throws {
        let (cluster, build) = (stage.cluster, before == nil ? nil : LocalCluster.executables)
        for part in parts where !stage.demos.hasFailed {
            report.take(
                try await stage.act(.stopped, on: part.name) { step in
                    step.ended = try await end([part], on: cluster)
                    try await Task.sleep(for: away)
                    step.ready = try await start([part], of: nil, on: stage)
                })
        }
        if before != nil, !stage.demos.hasFailed {
            report.take(
                try await stage.act(.migrated, on: "schema") { step in
                    step.ready = try await timed {
                        try await cluster.runCommand(
                            ["migrate", "--schema", LocalCluster.schemaFolder], from: build)
                    }
                })
        }
        for part in parts where !stage.demos.hasFailed {
            let others = (2...instanceCount).map { part.instance($0) }
            report.take(
                try await stage.act(.replaced, on: part.name) { step in
                    step.ended = try await end([part], on: cluster)
                    step.ready = try await start([part], of: build, on: stage)
                })
            report.take(
                try await stage.act(.scaled, on: part.name) { step in
                    step.ready = try await start(others, beside: [part], of: build, on: stage)
                    try await stage.untilClosed()
                    step.ended = try await end(others, on: cluster)
                    try await stage.untilShared([part], of: part.service)
                })
            report.take(
                try await stage.act(.killed, on: part.name) { step in
                    await cluster.kill9(part)
                    step.ready = try await start([part], of: build, on: stage)
                })
        }
    }

    /// Asks all to end at once.
    ///
    /// - Returns: How long the slowest took.
    private func end(_ parts: [LocalCluster.Part], on cluster: LocalCluster) async throws -> Double {
        try await timed {
            try await withThrowingTaskGroup(of: Void.self) { group in
                for part in parts {
                    group.addTask {
                        let end = await cluster.terminate(part, within: Self.endMax)
                        guard end == .exited(status: 0) else {
                            let how = end.map { "ended with \($0)" } ?? "did not end within \(Self.endMax)"
                            throw ClusterFailure("\(part.name) was asked to end, and \(how)")
                        }
                    }
                }
                try await group.waitForAll()
            }
        }
    }

    /// Starts instances of a service, and waits until each is ready and has partitions.
    private func start(
        _ parts: [LocalCluster.Part], beside others: [LocalCluster.Part] = [], of executables: String?,
        on stage: RehearsalStage
    ) async throws -> Double {
        try await timed {
            for part in parts { try stage.cluster.start(part, of: executables) }
            for part in parts { try await stage.cluster.waitUntilReady(part) }
            try await stage.untilShared(others + parts, of: parts.first?.service)
        }
    }

    private func timed(_ body: () async throws -> some Any) async throws -> Double {
        let start = ContinuousClock.now
        _ = try await body()
        return (ContinuousClock.now - start).inSeconds
    }
}

/// Waits for a condition.
///
/// - Throws: `ClusterFailure` when it does not come true within the time.
func wait(_ what: String, within: Duration, until condition: () throws -> Bool) async throws {
    let deadline = ContinuousClock.now + within
    while try !condition() {
        guard .now < deadline else { throw ClusterFailure("not within \(within): \(what)") }
        try await Task.sleep(for: .milliseconds(100))
    }
}
