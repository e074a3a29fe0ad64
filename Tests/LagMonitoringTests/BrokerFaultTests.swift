import Kafka
import Synchronization
import TestSupport
import Testing

@testable import LagMonitoring

/// Collection cycles of `lag-monitor` and `fieldpost lag --watch` while brokers and coordinators fail and recover.
///
/// A crash of librdkafka ends the process, and with it all tests.
@Suite(.ownThreads) struct BrokerFaultTests {
    private static let waitMax = Duration.milliseconds(400)
    /// Each request of a collection cycle waits for at most `waitMax`; some are repeated for single brokers.
    private static let cycleMax = Duration.seconds(60)
    private static let topics = ["t": 6, "u": 3]
    private static let groups = Dictionary(uniqueKeysWithValues: (0..<20).map { ("g\($0)", ["t", "u"]) })

    @Test(arguments: Seeds.random(1, for: "broker faults"))
    func collectionSurvivesFailuresOfBrokersAndCoordinators(seed: UInt64) async throws {
        try await withProxiedCluster(topics: Self.topics) { cluster, proxies in
            let address = proxies.address
            let watch = Watch()
            let reading = BackgroundThread { try Self.collect(from: address, watch) }
            BrokerFaults.inject(
                into: cluster, proxies, topics: Self.topics, groups: Self.groups.keys.sorted(),
                pauseMax: .milliseconds(200), seed: seed
            ) { !reading.isDone }
            watch.end()
            try reading.wait()
            let snapshots = watch.snapshots
            print("broker faults: \(snapshots)")
            #expect(snapshots.isComplete && snapshots.count > 1 && snapshots.longest < Self.cycleMax, "\(snapshots)")
        }
    }

    private static func collect(from address: String, _ watch: Watch) throws {
        let reader = try LagReader(brokers: address, properties: [:], waitMax: waitMax)
        let offsets = [TopicPartition(topic: "t", partition: 0): Int64(0)]
        let patience = BrokerFaults.duration + patienceMax
        let begin = ContinuousClock.now
        while true {
            let isLast = watch.isOver
            let start = ContinuousClock.now
            let snapshot = try? reader.snapshot(of: groups, others: true)
            if snapshot != nil { _ = try? reader.writtenTimes(of: offsets) }
            let isComplete = snapshot.map { snapshot in
                snapshot.problems.isEmpty && snapshot.groups.count == groups.count && snapshot.available.count == 9
            }
            watch.record(ContinuousClock.now - start, isComplete: isComplete ?? false)
            if isLast, isComplete ?? false || ContinuousClock.now - begin > patience { return }
        }
    }
}

/// The results of one thread while another one injects faults.
private final class Watch: Sendable {
    struct Snapshots {
        var count = 0
        var completeCount = 0
        var longest = Duration.zero
        /// Whether the latest snapshot is complete.
        var isComplete = false
    }

    private let state = Mutex((snapshots: Snapshots(), isOver: false))

    var snapshots: Snapshots { state.withLock(\.snapshots) }
    var isOver: Bool { state.withLock(\.isOver) }
    func end() { state.withLock { $0.isOver = true } }

    func record(_ time: Duration, isComplete: Bool) {
        state.withLock { state in
            state.snapshots.count += 1
            state.snapshots.completeCount += isComplete ? 1 : 0
            state.snapshots.longest = max(state.snapshots.longest, time)
            state.snapshots.isComplete = isComplete
        }
    }
}
