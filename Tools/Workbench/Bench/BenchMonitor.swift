import ArgumentParser
import Essentials
import HTTPClient
import Kafka
import LocalCluster
import Model
import Postgres

/// A collection cycle of `lag-monitor`, compared with queries of the same offsets alone.
struct BenchMonitor: BenchScenario {
    static let configuration = CommandConfiguration(
        commandName: "monitor",
        abstract: "Compare a cycle of lag-monitor with queries of the same offsets alone.",
        discussion: """
            The partitions have messages that no service has read, and PostgreSQL has deferred keys with different \
            reasons. The first cycle also queries the ages of at most 2,000 oldest messages. The offsets alone are \
            queried by librdkafka.
            """)

    @OptionGroup var options: BenchOptions

    @Option(help: "Partitions of each topic.") var partitions = 200
    @Option(help: "Deferred keys.") var deferred = 100_000

    func validate() throws {
        try BenchOptions.check(partitions, in: 1...1_000, "--partitions")
        try BenchOptions.check(deferred, in: 0...10_000_000, "--deferred")
    }

    static let targets = [
        BenchTarget(name: "cycle, ms", figure: "cycle", limit: .atMost(1_000)),
        BenchTarget(name: "cycle / offsets alone", figure: "cycle", reference: "offsets alone"),
    ]

    var installation: BenchInstallation.Configuration {
        var configuration = BenchInstallation.Configuration()
        configuration.topics = Dictionary(Topics.all.map { ($0.name, partitions) }) { first, _ in first }
        return configuration
    }

    /// Average number of messages of a partition.
    private static let messageCount = 10
    private static let waitMax = Duration.seconds(60)
    private static let cycleCount = 5

    func setUp(_ installation: BenchInstallation) async throws -> [String: [TopicPartition]?] {
        var producer = try Producer(brokers: installation.cluster.brokers)
        for topic in Topics.all {
            for number in 0..<partitions * Self.messageCount {
                let key = Array("\(number)".utf8)
                try unsafe producer.send(
                    topic.name, key: key.span.bytes, value: key.span.bytes, headers: Headers(capacity: 0))
            }
        }
        guard producer.flush(waitMax: Self.waitMax) else { throw ClusterFailure("producer flush timed out") }
        _ = producer.deliveries(waitMax: .zero)
        let groups = Services.all.filter { !$0.topics.isEmpty }
        let count = deferred
        try await installation.pool.run { connection in
            try connection.run(
                """
                INSERT INTO pipeline.parked (group_name, environment_id, key, topic, partition, subject, position,
                    reason, is_dead, is_circuit, attempts, next_at)
                SELECT (\(groups.map(\.name)))[1 + n % \(Int64(groups.count))], \(installation.environment.rawValue),
                    n::text, \(Topics.entry.name), 0, n::text, 0, 'record ' || n || ' is closed', n % 10 = 0,
                    n % 3 = 0, 1, now() + make_interval(secs => n % 100)
                FROM generate_series(1, \(Int64(count))) AS n
                """)
            try connection.runScript("ANALYZE pipeline.parked")
        }
        return Dictionary(
            uniqueKeysWithValues: groups.map { group in
                (
                    group.name,
                    group.topics.flatMap { topic in
                        (0..<partitions).map { TopicPartition(topic: topic.name, partition: Int32($0)) }
                    }
                )
            })
    }

    func measure(
        _ groups: [String: [TopicPartition]?], on installation: BenchInstallation, _ report: inout BenchReport
    ) async throws {
        report.add("offsets alone", "ms", try offsetsAlone(of: groups, at: installation.cluster.brokers))
        let cycles = try await cycles(on: installation)
        report.add("first cycle", "ms", cycles[0] * 1_000)
        report.add("cycle", "ms", Self.laterMedian(cycles) * 1_000)
    }

    /// The median without the first value, which includes connecting.
    private static func laterMedian(_ values: [Double]) -> Double { values.dropFirst().sorted()[cycleCount / 2] }

    /// The median duration of queries, in milliseconds.
    private func offsetsAlone(of groups: [String: [TopicPartition]?], at brokers: String) throws -> Double {
        let admin = try Admin(brokers: brokers, waitMax: Self.waitMax)
        let partitions = Set(groups.values.flatMap { $0 ?? [] })
        var times: [Double] = []
        for _ in 0...Self.cycleCount {
            let start = ContinuousClock.now
            let metadata = try admin.metadata()
            let committed = try admin.committed(groups)
            let firsts = admin.offsetsByLeader(at: .first, of: partitions, metadata)
            let ends = admin.offsetsByLeader(at: .end, of: partitions, metadata)
            guard committed.count == groups.count, [firsts, ends].allSatisfy({ $0.offsets.count == partitions.count })
            else { throw ClusterFailure("the broker has not returned all offsets") }
            times.append((ContinuousClock.now - start).inSeconds)
        }
        return Self.laterMedian(times) * 1_000
    }

    /// Durations of the first cycles of `lag-monitor`, in seconds.
    private func cycles(on installation: BenchInstallation) async throws -> [Double] {
        let port = try Ports.free()
        let process = try installation.start(
            Services.lagMonitor,
            variables: [
                "FIELDPOST_ADMIN_PORT": "\(port)", "FIELDPOST_MONITOR_INTERVAL": "500ms",
                "FIELDPOST_LOG_LEVEL": "warning",
            ])
        defer { process.kill9() }
        let request = Request("http://127.0.0.1:\(port)/metrics", connectMax: .seconds(2), totalMax: .seconds(2))
        var cycles: [Double] = []
        try await waitUntil("cycles of lag-monitor", within: Self.waitMax, interval: .milliseconds(20)) {
            guard process.isRunning else { throw ClusterFailure(process.logTail()) }
            let response = try? await installation.client.send(request)
            guard let response, response.status == 200 else { return false }
            let lines = String(decoding: response.body, as: UTF8.self).split(separator: "\n")
            guard let count = lines.first(where: { $0.hasPrefix("fieldpost_monitor_problems ") }) else { return false }
            guard count.hasSuffix(" 0") else { throw ClusterFailure(process.logTail()) }
            let seconds = lines.first { $0.hasPrefix("fieldpost_monitor_cycle_seconds ") }?
                .split(separator: " ").last.flatMap { Double($0) }
            if let seconds, cycles.last != seconds { cycles.append(seconds) }
            return cycles.count > Self.cycleCount
        }
        return cycles
    }
}
