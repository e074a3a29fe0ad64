import Essentials
import Kafka
import LagMonitoring
import Logging
import Model
import TestSupport
import Testing

@testable import LagMonitor

/// The charts of a monitor at a real broker.
@Suite(.ownThreads) struct ChartTests {
    private static let name = SampleHistory.Name(group: Services.entrySubmitter.name, topic: Topics.entry.name)
    private static let partition = TopicPartition(topic: name.topic, partition: 0)
    private static let topics = Dictionary(uniqueKeysWithValues: Topics.all.map { ($0.name, 1) })

    private static func write(_ count: Int, to address: String) throws {
        var producer = try Producer(brokers: address)
        for number in 0..<count {
            try producer.send(name.topic, key: [1], value: [UInt8(truncatingIfNeeded: number)])
        }
        let isFlushed = producer.flush(waitMax: patienceMax)
        #expect(isFlushed)
    }

    private static func commit(_ offset: Int64, at address: String) throws {
        let admin = try Admin(brokers: address, waitMax: patienceMax)
        try admin.commit(group: name.group, [partition: offset])
    }

    /// Runs collection cycles until one is complete and has this lag.
    private static func collect(_ monitor: inout Monitor, _ board: SnapshotBoard, untilLag lag: Int64) throws {
        let end = ContinuousClock.now + patienceMax
        while true {
            _ = try monitor.step()
            let snapshot = board.snapshot
            let sum = snapshot.sums.first { $0.group == name.group && $0.topic == name.topic }
            if snapshot.problems.isEmpty, sum?.count == lag { return }
            try #require(ContinuousClock.now < end, "\(snapshot.problems), \(String(describing: sum))")
        }
    }

    /// A backlog at the start, a burst before the group's first commit, and a broker that loses its topics.
    @Test func chartsContainTheMessagesThereWere() async throws {
        try await withMockCluster(topics: Self.topics, restarts: true) { cluster in
            let environment = try TestEnvironment()
            let board = SnapshotBoard()
            var logger = Logger(label: "test")
            logger.logLevel = .critical
            var monitor = try Monitor(
                conninfo: environment.conninfo, brokers: cluster.address, properties: [:], cluster: "c", others: false,
                partitionCountMax: 1_000, board: board, logger: logger)
            try Self.write(40, to: cluster.address)
            try Self.collect(&monitor, board, untilLag: 40)
            try Self.write(500, to: cluster.address)
            try Self.collect(&monitor, board, untilLag: 540)
            try Self.commit(530, at: cluster.address)
            try Self.collect(&monitor, board, untilLag: 10)
            // The group restarts, and resumes at its offset.
            try Self.write(20, to: cluster.address)
            try Self.commit(560, at: cluster.address)
            try Self.collect(&monitor, board, untilLag: 0)
            try cluster.restartEmpty()
            try Self.write(30, to: cluster.address)
            try Self.collect(&monitor, board, untilLag: 30)
            try Self.commit(25, at: cluster.address)
            try Self.collect(&monitor, board, untilLag: 5)
            // Without messages since the last cycle, a later snapshot completes the last interval.
            try Self.collect(&monitor, board, untilLag: 5)
            var history = board.history
            let later = Timestamp.now().millisecondsSinceEpoch + 2 * SampleHistory.stepMilliseconds
            history.add(board.snapshot.sums, at: later)
            let points = history.points(of: Self.name, in: history.hour(until: later))
            let writtenCount = points.compactMap(\.writtenCount).reduce(0, +)
            let consumedCount = points.compactMap(\.consumedCount).reduce(0, +)
            #expect(writtenCount == 550 && consumedCount == 585)
            #expect(points.compactMap(\.lag).max() == 540)
        }
    }
}
