import Essentials
import Kafka
import TestSupport
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

@Suite(.ownThreads) struct SampleHistoryTests {
    private static let start: Int64 = 1_800_000_000_000
    private static let step = SampleHistory.stepMilliseconds
    private let name = SampleHistory.Name(group: "readers", topic: "a")

    private func sums(written: Int64, consumed: Int64, lag: Int64 = 0) -> [LagSum] {
        let partition = TopicPartition(topic: name.topic, partition: 0)
        return LagSum.sums(of: [
            PartitionLag(
                group: name.group, partition: partition,
                beginning: Beginning(partition: partition, committed: 0, available: 0..<lag), hasConsumer: true,
                writtenCount: written, consumedCount: consumed)
        ])
    }

    private func points(_ history: SampleHistory, at time: Int64) -> [SampleHistory.Point] {
        history.points(of: name, in: history.hour(until: time))
    }

    @Test func historyKeepsOneHour() {
        var history = SampleHistory()
        func fill(from: Int64, seconds: Int64) -> [SampleHistory.Point] {
            for second in stride(from: from, through: from + seconds, by: 10) {
                history.add(sums(written: 5, consumed: 4, lag: second), at: Self.start + second * 1_000)
            }
            return points(history, at: Self.start + (from + seconds) * 1_000)
        }
        let half = fill(from: 0, seconds: 1_800)
        #expect(half.count == 120 && half.prefix(60).allSatisfy { $0 == SampleHistory.Point() })
        // Three snapshots per interval; the first one of all counts from its own time only.
        #expect(half[60].writtenCount == 20 && half[119].writtenCount == 15 && half[119].consumedCount == 12)
        #expect(half[119].lag == 1_790, "the maximum of the interval")
        #expect(fill(from: 1_810, seconds: 7_200).allSatisfy { $0.writtenCount == 15 && $0.lag != nil })
        // An hour without data clears the history.
        history.add([], at: Self.start + 20_000_000)
        #expect(history.names.isEmpty)
    }

    /// At any times of snapshots, a complete interval never changes, and no message is lost or counted twice.
    @Test(arguments: Seeds.random(20, for: "charts"))
    func pastPointsStayAndSumUpToTheMessages(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        var history = SampleHistory()
        var time = Self.start + Int64.random(in: 0..<Self.step, using: &random)
        var seen: [Int64: SampleHistory.Point] = [:]
        var (written, consumed): (Int64, Int64) = (0, 0)
        func add(_ counts: (Int64, Int64)) {
            history.add(sums(written: counts.0, consumed: counts.1, lag: counts.0), at: time)
            let now = time + Int64.random(in: 0...Self.step, using: &random)
            for (number, point) in zip(history.hour(until: now), points(history, at: now)) {
                guard point.writtenCount != nil else {
                    if seen[number] != nil { Issue.record("\(number) is unknown again") }
                    continue
                }
                if let before = seen.updateValue(point, forKey: number), before != point {
                    Issue.record("\(number): \(before) → \(point)")
                }
            }
        }
        add((0, 0))
        for _ in 0..<1_000 {
            // Often several snapshots per interval, sometimes a gap of many; also two at the same time.
            time +=
                random.happens(5)
                ? Int64.random(in: 0...1_200_000, using: &random)
                : Int64.random(in: 0...15_000, using: &random)
            let burst: Int64 = random.happens(10) ? 100_000 : 10
            let counts = (Int64.random(in: 0...burst, using: &random), Int64.random(in: 0...burst, using: &random))
            (written, consumed) = (written + counts.0, consumed + counts.1)
            add(counts)
        }
        time += 2 * Self.step
        add((0, 0))
        #expect(seen.values.compactMap(\.writtenCount).reduce(0, +) == written)
        #expect(seen.values.compactMap(\.consumedCount).reduce(0, +) == consumed)
    }

    @Test func gapIsFilledEvenlyAndItsLagIsUnknown() {
        var history = SampleHistory()
        history.add(sums(written: 0, consumed: 0, lag: 7), at: Self.start)
        history.add(sums(written: 1_000, consumed: 10, lag: 9), at: Self.start + 10 * Self.step)
        let last = points(history, at: Self.start + 10 * Self.step).suffix(10)
        #expect(last.map(\.writtenCount) == Array(repeating: 100, count: 10))
        #expect(last.map(\.consumedCount) == Array(repeating: 1, count: 10))
        #expect(last.map(\.lag) == [7] + Array(repeating: nil, count: 9))
    }

    /// Nothing is drawn before an interval is complete: its value would change.
    @Test func incompleteIntervalIsUnknown() {
        var history = SampleHistory()
        for second in stride(from: Int64(0), through: 50, by: 10) {
            history.add(sums(written: 1, consumed: 1), at: Self.start + second * 1_000)
        }
        let points = points(history, at: Self.start + 70_000)
        #expect(points.suffix(2).map(\.writtenCount) == [4, nil])
    }

    @Test func clockThatIsSetBackRestartsTheHistory() {
        var history = SampleHistory()
        history.add(sums(written: 0, consumed: 0), at: Self.start)
        history.add(sums(written: 6, consumed: 0), at: Self.start + Self.step)
        // Corrections of a few seconds change nothing.
        history.add(sums(written: 3, consumed: 0), at: Self.start + Self.step - 2_000)
        history.add(sums(written: 0, consumed: 0), at: Self.start + 3 * Self.step)
        let known = points(history, at: Self.start + 3 * Self.step).compactMap(\.writtenCount)
        #expect(known.reduce(0, +) == 9)
        let past = Self.start - 100 * Self.step
        history.add(sums(written: 0, consumed: 0), at: past)
        history.add(sums(written: 8, consumed: 0), at: past + Self.step)
        #expect(points(history, at: past + Self.step).compactMap(\.writtenCount) == [8])
    }

    @Test func seriesAreLimited() {
        var generator = SnapshotGenerator(
            topics: (0..<SampleHistory.seriesCountMax + 7).map { "t\($0)" }, partitionCount: 1)
        var history = SampleHistory()
        history.add(generator.snapshot(at: Self.start).sums, at: Self.start)
        #expect(history.names.count == SampleHistory.seriesCountMax && history.omittedCount == 7)
    }
}
