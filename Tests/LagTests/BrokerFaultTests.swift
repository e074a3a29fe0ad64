import Essentials
import Foundation
import Kafka
import Synchronization
import TestSupport
import Testing

@testable import Lag

/// Collection cycles of `lag-monitor` and `fieldpost lag --watch` while brokers and coordinators fail and recover.
///
/// A crash of librdkafka ends the process, and with it all tests. `BROKER_FAULT_SECONDS` sets how long the faults last.
@Suite(.ownThreads) struct BrokerFaultTests {
    private static let waitMax = Duration.milliseconds(400)
    /// Each request of a collection cycle waits for at most `waitMax`; some are repeated for single brokers.
    private static let lookMax = Duration.seconds(60)
    private static let topics = ["t": 6, "u": 3]
    private static let groups = Dictionary(uniqueKeysWithValues: (0..<20).map { ("g\($0)", ["t", "u"]) })

    private static var duration: Duration {
        .seconds(ProcessInfo.processInfo.environment["BROKER_FAULT_SECONDS"].flatMap { Int($0) } ?? 5)
    }

    @Test func collectionSurvivesFailuresOfBrokersAndCoordinators() async throws {
        let seed = Seeds.random(1, for: "broker faults")[0]
        try await withProxiedCluster(topics: Self.topics) { cluster, proxies in
            let address = proxies.address
            let threadCount = Self.threadCount
            let watch = Watch()
            let reading = BackgroundThread { try Self.look(at: address, watch) }
            var random = SplitMix64(seed: seed)
            let end = ContinuousClock.now + Self.duration
            while ContinuousClock.now < end, !reading.isDone {
                Self.fault(cluster, proxies, &random)
                poll(nil, 0, Int32.random(in: 10...200, using: &random))
            }
            for broker in 1...3 { Self.repair(proxies, broker) }
            watch.end()
            try reading.wait()
            let looks = watch.looks
            print("broker faults: \(looks), threads \(threadCount) before, \(Self.threadCount) after")
            #expect(looks.isWhole && looks.count > 1 && looks.longest < Self.lookMax, "\(looks)")
            // A leaked client has five threads at least.
            #expect(Self.threadCount < threadCount + 100)
        }
    }

    private static func look(at address: String, _ watch: Watch) throws {
        let reader = try LagReader(brokers: address, properties: [:], waitMax: waitMax)
        let offsets = [TopicPartition(topic: "t", partition: 0): Int64(0)]
        let patience = duration + patienceMax
        let begin = ContinuousClock.now
        while true {
            let isLast = watch.isOver
            let start = ContinuousClock.now
            let look = try? reader.look(at: groups, others: true)
            if look != nil { _ = try? reader.writtenTimes(of: offsets) }
            let isWhole = look.map { look in
                look.problems.isEmpty && look.groups.count == groups.count && look.available.count == 9
            }
            watch.note(ContinuousClock.now - start, isWhole: isWhole ?? false)
            if isLast, isWhole ?? false || ContinuousClock.now - begin > patience { return }
        }
    }

    private static func fault(
        _ cluster: borrowing MockCluster, _ proxies: BrokerProxies, _ random: inout SplitMix64
    ) {
        let broker = Int.random(in: 1...3, using: &random)
        switch Int.random(in: 0..<20, using: &random) {
        case 0, 1: proxies.freeze(broker)
        case 2, 3: proxies.cut(broker)
        case 4: proxies.setRoundTrip(.milliseconds(Int.random(in: 0...600, using: &random)), of: broker)
        case 5: cluster.coordinate("g\(Int.random(in: 0..<20, using: &random))", by: Int32(broker))
        // COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR
        case 6: cluster.spoil(.offsetFetch, with: [14, 15, 16, 16])
        case 7: cluster.lead("t", Int32.random(in: 0..<6, using: &random), by: Int32(broker))
        default: repair(proxies, broker)
        }
    }

    private static func repair(_ proxies: BrokerProxies, _ broker: Int) {
        proxies.resume(broker)
        proxies.restore(broker)
        proxies.setRoundTrip(.zero, of: broker)
    }

    /// librdkafka's threads in this process: parallel tests have some, too.
    private static var threadCount: Int {
        let threads = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/task")) ?? []
        return threads.count { thread in
            (try? String(contentsOfFile: "/proc/self/task/\(thread)/comm", encoding: .utf8))?.hasPrefix("rdk:") ?? false
        }
    }
}

/// The results of one thread while another one injects faults.
private final class Watch: Sendable {
    struct Looks {
        var count = 0
        var wholeCount = 0
        var longest = Duration.zero
        /// Whether the latest one saw all.
        var isWhole = false
    }

    private let state = Mutex((looks: Looks(), isOver: false))

    var looks: Looks { state.withLock(\.looks) }
    var isOver: Bool { state.withLock(\.isOver) }
    func end() { state.withLock { $0.isOver = true } }

    func note(_ time: Duration, isWhole: Bool) {
        state.withLock { state in
            state.looks.count += 1
            state.looks.wholeCount += isWhole ? 1 : 0
            state.looks.longest = max(state.looks.longest, time)
            state.looks.isWhole = isWhole
        }
    }
}
