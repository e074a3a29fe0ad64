import ArgumentParser
import Essentials
import FoundationEssentials
import LocalCluster
import Model
import ObjectStore
import Postgres
import ServiceSettings

/// The cost of an idle installation, and the latency of the first change afterwards.
struct BenchIdle: BenchScenario {
    static let configuration = CommandConfiguration(
        commandName: "idle",
        abstract: "Measure an idle installation: processor, wake-ups, memory.",
        discussion: """
            All services run, and nothing changes. The processor's time is a share of one core. A wake-up is a \
            thread's return from a wait. The memory of PostgreSQL is the proportional share (PSS) of its processes, \
            that of others the resident set (RSS). The broker counts the requests of each service.

            The latency of the first change is that between two devices of a person, after a second idle time of \
            the same duration. After a third one, a change is written whose notification PostgreSQL does not send.
            """)

    @OptionGroup var options: BenchOptions

    @Option(help: "Number of idle live devices, all of one person.") var devices = 0
    @Option(help: "Duration of a run's idle time, in seconds.") var seconds = 15

    func validate() throws {
        try BenchOptions.check(devices, in: 0...60_000, "--devices")
        try BenchOptions.check(seconds, in: 1...3_600, "--seconds")
    }

    static let targets = [
        BenchTarget(name: "processor, all", figure: "all, processor", limit: .atMost(5)),
        BenchTarget(name: "wake-ups of a service", figure: "service with most wake-ups", limit: .atMost(10)),
        BenchTarget(name: "memory, services", figure: "services, memory", limit: .atMost(300)),
        BenchTarget(
            name: "requests of a consumer", figure: "service with most requests per consumer", limit: .atMost(3)),
        BenchTarget(name: "first change", figure: "first change", limit: .atMost(10)),
        BenchTarget(
            name: "first change, notification lost, maximum", figure: lostChange, statistic: .maximum,
            limit: .atMost((AwaitedPositions.pollInterval + .milliseconds(50)).inSeconds * 1_000)),
    ]

    private static let lostChange = "first change, notification lost"
    private static let services = LocalCluster.Part.services
    /// The services with consumers.
    private static let workers = services.filter { $0.service.map { !$0.topics.isEmpty } ?? false }
    private static let idleMax = Duration.seconds(120)
    private static let changeMax = Duration.seconds(30)

    var installation: BenchInstallation.Configuration {
        var configuration = BenchInstallation.Configuration.devices(devices)
        configuration.services = Self.services
        return configuration
    }

    func setUp(_ installation: BenchInstallation) {}

    func measure(
        _ fixture: Void, on installation: BenchInstallation, _ report: inout BenchReport
    ) async throws {
        var sockets = BenchSockets(port: try installation.gatewayPort)
        if devices > 0 {
            let body = GatewayClient.firstSyncBody(isLive: true)
            try sockets.open(
                devices, request: BenchConnections.request("/v1/sync", body, token: installation.tokens[0]),
                until: "\"checkpoint\"")
        }
        try await Self.waitUntilIdle(installation)
        let before = try await IdleSample(installation.cluster)
        try await Task.sleep(for: .seconds(seconds))
        let after = try await IdleSample(installation.cluster)
        add(before, after, &report)
        try await addFirstChanges(on: installation, &report)
    }

    /// Waits until every worker's consumers fetch, and no client joins a group or produces.
    private static func waitUntilIdle(_ installation: BenchInstallation) async throws {
        var last = try await IdleSample.requests(of: installation.cluster)
        try await waitUntil("the installation is idle", within: idleMax, interval: .seconds(2)) {
            let requests = try await IdleSample.requests(of: installation.cluster)
            defer { last = requests }
            let grown = Set(requests.filter { $0.value > last[$0.key, default: 0] }.keys)
            let isFetched = workers.allSatisfy { grown.contains(BrokerRequests.Kind("Fetch", $0.name)) }
            return isFetched && !grown.contains { ["JoinGroup", "SyncGroup", "Produce"].contains($0.api) }
        }
    }

    private func add(_ before: IdleSample, _ after: IdleSample, _ report: inout BenchReport) {
        let seconds = (after.usedAt - before.usedAt).inSeconds
        var total = ProcessUsage.Sample()
        var services = ProcessUsage.Sample()
        var wakeupsMax = 0.0
        for part in IdleSample.parts {
            guard let first = before.usage[part], let last = after.usage[part] else { continue }
            let change = last.change(since: first)
            add(part.name, change, seconds, &report)
            total = total + change
            if part.service == nil { continue }
            services = services + change
            wakeupsMax = max(wakeupsMax, change.wakeupCount / seconds)
        }
        add("services", services, seconds, &report)
        add("all", total, seconds, &report)
        report.add("service with most wake-ups", "1/s", wakeupsMax)
        let consumerCount = Double(Setting.workerCount.defaultText ?? "") ?? .nan
        let requests = Self.workers.map { part in
            let grown = after.requests.filter { $0.key.clientID == part.name }
                .map { $0.value - before.requests[$0.key, default: 0] }.reduce(0, +)
            return Double(grown) / (after.countedAt - before.countedAt).inSeconds / consumerCount
        }
        report.add("service with most requests per consumer", "1/s", requests.max() ?? .nan)
    }

    private func add(
        _ name: String, _ usage: ProcessUsage.Sample, _ seconds: Double, _ report: inout BenchReport
    ) {
        report.add("\(name), processor", "% of a core", usage.processorSeconds / seconds * 100)
        report.add("\(name), wake-ups", "1/s", usage.wakeupCount / seconds)
        report.add("\(name), threads", "", Double(usage.threadCount))
        report.add("\(name), memory", "MB", usage.memory)
    }

    /// Adds the latencies to a device that has received nothing for a while.
    private func addFirstChanges(on installation: BenchInstallation, _ report: inout BenchReport) async throws {
        var sender = try BenchSender(installation)
        let (lines, released) = (LatencyClock(), LatencyClock())
        let receiver = try await BenchLive.receive(on: installation, lines, released)
        defer { receiver.cancel() }
        let fields = #"{"text":"After idle time"}"#
        try await Task.sleep(for: .seconds(seconds))
        try await sender.send(1, perSecond: 1, [lines]) { _ in Array(fields.utf8) }
        report.add("first change", "ms", try await latency(lines))

        try await Task.sleep(for: .seconds(seconds))
        let (environment, path) = (installation.environment, try RealmPath.user(installation.people[0].email))
        try await installation.pool.run { connection in
            var directory = RealmDirectory()
            guard let realm = try directory.ids(of: [path], in: environment, create: true, on: &connection)[path]
            else { throw ClusterFailure("\(path) has no realm") }
            let key = ObjectKey(realm: realm, kind: .timeEntry, id: UUID())
            var batch = WriteBatch(environment: environment)
            batch.put(key, try CanonicalJSON(fields), decision: 0)
            lines.start(key.id, at: .now)
            try connection.run(
                ["UPDATE realm.environment SET is_awaited = false WHERE id = \(environment.rawValue)"] + batch.pipeline)
        }
        report.add(Self.lostChange, "ms", try await latency(lines))
    }

    private func latency(_ lines: LatencyClock) async throws -> Double {
        try await lines.waitUntilComplete(within: Self.changeMax)
        return (lines.take().first?.inSeconds ?? .nan) * 1_000
    }
}

/// The usage of an installation's processes, and the broker's requests, at one moment.
private struct IdleSample: Sendable {
    static let parts = [LocalCluster.Part.database, .broker] + LocalCluster.Part.services

    let usage: [LocalCluster.Part: ProcessUsage.Sample]
    let usedAt: ContinuousClock.Instant
    let requests: [BrokerRequests.Kind: Int]
    let countedAt: ContinuousClock.Instant

    init(_ cluster: LocalCluster) async throws {
        // Before the processes' usage, which the broker's output is part of.
        requests = try await Self.requests(of: cluster)
        countedAt = .now
        var usage: [LocalCluster.Part: ProcessUsage.Sample] = [:]
        for part in Self.parts {
            guard let process = cluster.process(part), process.isRunning else {
                throw ClusterFailure("\(part.name) does not run")
            }
            usage[part] = ProcessUsage.sample(of: process.id, isShared: part == .database)
        }
        self.usage = usage
        usedAt = .now
    }

    static func requests(of cluster: LocalCluster) async throws -> [BrokerRequests.Kind: Int] {
        guard let broker = cluster.process(.broker) else { throw ClusterFailure("the broker does not run") }
        return try await onOwnThread { () throws(ClusterFailure) in try BrokerRequests(of: broker).counts }
    }
}
