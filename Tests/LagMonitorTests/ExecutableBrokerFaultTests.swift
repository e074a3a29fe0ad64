import Foundation
import Kafka
import LocalCluster
import Model
import TestSupport
import Testing

/// The executables `lag-monitor` and `fieldpost lag --watch` while brokers and coordinators fail and recover.
@Suite(.ownThreads) struct ExecutableBrokerFaultTests {
    /// About 1,000 partitions.
    private static let topics = Dictionary(uniqueKeysWithValues: Topics.all.map { ($0.name, $0.partitions * 8) })
    private static let groups = Set(Topics.all.flatMap(\.consumers)).sorted()
    /// Both programs wait five seconds for a response: some faults last longer.
    private static let pauseMax = Duration.seconds(20)
    private static let cycleMax = Duration.seconds(120)
    private static let messageCount = 100

    @Test(arguments: Seeds.random(1, for: "broker faults of programs"))
    func lagMonitorAndWatchSurviveFailuresOfBrokersAndCoordinators(seed: UInt64) async throws {
        try await withProxiedCluster(topics: Self.topics) { cluster, proxies in
            let environment = try TestEnvironment()
            let folder = try ClusterFolder("broker-faults")
            try Self.write(Self.messageCount, to: cluster.address)
            let monitor = try ObservedProgram(
                monitorIn: folder, port: Ports.free(), database: environment.conninfo, brokers: proxies.address)
            defer { monitor.end() }
            let rowCount = Topics.all.map { (Self.topics[$0.name] ?? 0) * $0.consumers.count }.reduce(0, +)
            let watch = try ObservedProgram(watchIn: folder, brokers: proxies.address, rowCount: rowCount)
            defer { watch.end() }
            let programs = [monitor, watch]
            for program in programs { try Self.waitForLag(Self.messageCount, in: program) }
            let before = try programs.map { try ProcessSize(of: $0.process.id) }

            BrokerFaults.inject(
                into: cluster, proxies, topics: Self.topics, groups: Self.groups, pauseMax: Self.pauseMax, seed: seed
            ) { programs.allSatisfy(\.process.isRunning) }

            // Only a cycle after the repair can report this message.
            try Self.write(1, to: cluster.address)
            for (program, before) in zip(programs, before) {
                try Self.waitForLag(Self.messageCount + 1, in: program)
                let cycles = program.cycles
                let after = try ProcessSize(of: program.process.id)
                print("broker faults: \(program.name): \(cycles), \(before) before, \(after) after")
                #expect(cycles.longest < Self.cycleMax, "\(program.name): \(cycles)")
                // A leaked client of librdkafka has five threads at least; one that is being closed ends its own.
                try Self.wait("\(program.name) has few threads and little memory") {
                    let size = try ProcessSize(of: program.process.id)
                    let isSmall = size.threads < before.threads + 20 && size.megabytes < before.megabytes + 100
                    return isSmall ? nil : "\(before) before, \(size) after"
                }
            }
            try Self.wait("lag-monitor is ready") {
                let response = try monitor.response("/health/ready")
                return response.status == 200 ? nil : String(decoding: response.body, as: UTF8.self)
            }
        }
    }

    private static func write(_ count: Int, to brokers: String) throws {
        var producer = try Producer(brokers: brokers)
        for number in 0..<count {
            try producer.send(Topics.entry.name, key: [UInt8(truncatingIfNeeded: number)], value: [0])
        }
        let isFlushed = producer.flush(waitMax: patienceMax)
        try #require(isFlushed)
    }

    private static func waitForLag(_ lag: Int, in program: ObservedProgram) throws {
        try wait("\(program.name) sees everything") {
            let cycles = program.cycles
            if cycles.isWhole, cycles.lag == lag { return nil }
            try #require(program.process.isRunning, "\(program.name) ended: \(program.output)")
            return "\(cycles): \(program.output)"
        }
    }

    /// - Parameter problem: `nil` once the condition holds.
    private static func wait(_ condition: String, _ problem: () throws -> String?) throws {
        let end = ContinuousClock.now + patienceMax
        while let problem = try problem() {
            try #require(ContinuousClock.now < end, "not in time: \(condition): \(problem)")
            poll(nil, 0, 50)
        }
    }
}
