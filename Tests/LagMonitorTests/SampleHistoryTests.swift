import Kafka
import Testing

@testable import LagMonitor
@testable import LagMonitoring

/// Generates snapshots at given times, with groups that consume all partitions and never catch up.
struct SnapshotGenerator {
    var history = LagHistory()
    let topics: [String]
    let partitionCount: Int
    var groups: [String] = ["readers"]

    init(topics: [String], partitionCount: Int) { (self.topics, self.partitionCount) = (topics, partitionCount) }

    /// Returns a snapshot: every partition has one more message than 10 s before, and half of them are consumed.
    mutating func snapshot(at milliseconds: Int64) -> MonitorSnapshot {
        var available: [TopicPartition: Range<Int64>] = [:]
        var offsets: [TopicPartition: Int64?] = [:]
        let end = milliseconds / 10_000 % 100_000
        for topic in topics {
            for partition in 0..<Int32(partitionCount) {
                let key = TopicPartition(topic: topic, partition: partition)
                available[key] = 0..<end
                offsets[key] = end / 2
            }
        }
        history.take(
            LagSnapshot(
                milliseconds: milliseconds, available: available,
                groups: groups.map { LagSnapshot.Group(name: $0, isKnown: true, offsets: offsets, memberCount: 1) }))
        var snapshot = MonitorSnapshot()
        snapshot.take(history.lags)
        return snapshot
    }
}

@Suite struct SampleHistoryTests {
    private static let start: Int64 = 1_800_000_000_000
    private let name = SampleHistory.Name(group: "readers", topic: "a")

    private func fill(_ history: inout SampleHistory, _ generator: inout SnapshotGenerator, from: Int64, seconds: Int64)
    {
        for second in stride(from: from, to: from + seconds, by: 10) {
            let at = Self.start + second * 1_000
            history.add(generator.snapshot(at: at).sums, at: at)
        }
    }

    @Test func historyKeepsOneHour() {
        var (history, generator) = (SampleHistory(), SnapshotGenerator(topics: ["a"], partitionCount: 2))
        fill(&history, &generator, from: 0, seconds: 1_800)
        let half = history.points(of: name, countMax: 360)
        #expect(half.count == 360 && half.filter { $0.lag.isNaN }.count == 180 && half[0].lag.isNaN)
        #expect(half.last.map { $0.lag > 0 && $0.inRate > 0 } == true)
        fill(&history, &generator, from: 1_800, seconds: 7_200)
        #expect(history.points(of: name, countMax: 360).allSatisfy { !$0.lag.isNaN })
        // A point has the maximum of its samples.
        #expect(history.points(of: name, countMax: 1).first?.lag == history.points(of: name, countMax: 360).last?.lag)
        #expect(history.points(of: name, countMax: 120).count == 120)
        // Snapshots from the past are ignored; an hour without data clears the history.
        let last = history.points(of: name, countMax: 360)
        history.add([], at: Self.start)
        #expect(history.points(of: name, countMax: 360) == last)
        history.add([], at: Self.start + 20_000_000)
        #expect(history.names.isEmpty)
    }

    @Test func laterSnapshotInSameIntervalReplacesEarlier() {
        var (history, generator) = (SampleHistory(), SnapshotGenerator(topics: ["a"], partitionCount: 1))
        for millisecond in [0, 4_000, 9_999] as [Int64] {
            let at = Self.start + millisecond
            history.add(generator.snapshot(at: at).sums, at: at)
        }
        #expect(history.points(of: name, countMax: 360).filter { !$0.lag.isNaN }.count == 1)
    }

    @Test func seriesAreLimited() {
        var generator = SnapshotGenerator(
            topics: (0..<SampleHistory.seriesCountMax + 7).map { "t\($0)" }, partitionCount: 1)
        var history = SampleHistory()
        history.add(generator.snapshot(at: Self.start).sums, at: Self.start)
        #expect(history.names.count == SampleHistory.seriesCountMax && history.omittedCount == 7)
    }
}
