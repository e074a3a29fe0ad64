import Kafka
import Synchronization
import TestSupport
import Testing

@testable import LagMonitoring

/// Collection cycles of `lag-monitor` and `fieldpost lag --watch` while brokers and coordinators fail and recover.
///
/// A crash of librdkafka ends the process, and with it all tests. `BROKER_FAULT_SECONDS` sets how long the faults last.
@Suite(.ownThreads) struct BrokerFaultTests {
    private static let waitMax = Duration.milliseconds(400)
    /// Each request of a collection cycle waits for at most `waitMax`; some are repeated for single brokers.
    private static let lookMax = Duration.seconds(60)
    private static let topics = ["t": 6, "u": 3]
    private static let groups = Dictionary(uniqueKeysWithValues: (0..<20).map { ("g\($0)", ["t", "u"]) })

    @Test func collectionSurvivesFailuresOfBrokersAndCoordinators() async throws {
        let seed = Seeds.random(1, for: "broker faults")[0]
        try await withProxiedCluster(topics: Self.topics) { cluster, proxies in
            let address = proxies.address
            let watch = Watch()
            let reading = BackgroundThread { try Self.look(at: address, watch) }
            BrokerFaults.inject(
                into: cluster, proxies, topics: Self.topics, groups: Self.groups.keys.sorted(),
                pauseMax: .milliseconds(200), seed: seed
            ) { !reading.isDone }
            watch.end()
            try reading.wait()
            let looks = watch.looks
            print("broker faults: \(looks)")
            #expect(looks.isWhole && looks.count > 1 && looks.longest < Self.lookMax, "\(looks)")
        }
    }

    private static func look(at address: String, _ watch: Watch) throws {
        let reader = try LagReader(brokers: address, properties: [:], waitMax: waitMax)
        let offsets = [TopicPartition(topic: "t", partition: 0): Int64(0)]
        let patience = BrokerFaults.duration + patienceMax
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
