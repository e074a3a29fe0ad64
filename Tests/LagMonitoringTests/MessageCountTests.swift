import Essentials
import Kafka
import TestSupport
import Testing

@testable import LagMonitoring

struct MessageCountTests {
    private static let partition = TopicPartition(topic: "t", partition: 0)

    private func consumed(_ from: (Int64?, Range<Int64>)?, _ to: (Int64?, Range<Int64>)) -> Int64 {
        func sample(_ state: (Int64?, Range<Int64>)) -> MessageCountRule.Sample {
            MessageCountRule.Sample(committed: state.0, available: state.1)
        }
        return MessageCountRule.consumed(from: from.map(sample), to: sample(to))
    }

    @Test func writtenMessagesAreCountedByEndOffsets() {
        #expect(MessageCountRule.written(from: nil, to: 0..<100) == 0)
        #expect(MessageCountRule.written(from: 100, to: 0..<130) == 30)
        #expect(MessageCountRule.written(from: 100, to: 130..<130) == 30)
        // The topic was created again; the end of a partition moved backwards by an unclean election.
        #expect(MessageCountRule.written(from: 100, to: 0..<30) == 30)
        #expect(MessageCountRule.written(from: 100, to: 20..<90) == 0)
    }

    @Test func consumedMessagesAreCountedByCommits() {
        #expect(consumed(nil, (70, 0..<100)) == 0)
        #expect(consumed((50, 0..<100), (70, 0..<100)) == 20)
        #expect(consumed((70, 0..<100), (70, 0..<100)) == 0)
        // The first commit: the group began at the first available message.
        #expect(consumed((nil, 0..<100), (70, 0..<100)) == 70)
        #expect(consumed((nil, 40..<100), (70, 40..<100)) == 30)
        // Expired messages are not consumed.
        #expect(consumed((10, 0..<100), (10, 50..<100)) == 0)
        #expect(consumed((10, 50..<100), (60, 50..<100)) == 10)
        // A rewind consumes nothing; the same messages then count again.
        #expect(consumed((70, 0..<100), (20, 0..<100)) == 0)
        #expect(consumed((20, 0..<100), (70, 0..<100)) == 50)
        // The topic was created again: without a commit, with one, and with the old one.
        #expect(consumed((70, 0..<100), (nil, 0..<30)) == 0)
        #expect(consumed((70, 0..<100), (12, 0..<30)) == 12)
        #expect(consumed((20, 0..<100), (20, 0..<30)) == 0)
        // The broker removed the group's offset.
        #expect(consumed((70, 0..<100), (nil, 0..<100)) == 0)
    }

    /// Random operations on partitions with a group, one of which is created later: the counts of all snapshots sum up
    /// to the true numbers, although some snapshots are incomplete.
    @Test(arguments: Seeds.random(20, for: "message counts"))
    func countsSumUpToTheMessages(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        var partitions = (0..<Int32(4)).map { SimulatedPartition(number: $0, isCreated: $0 < 3, &random) }
        var history = LagHistory()
        history.take(SimulatedPartition.snapshot(of: partitions, second: 0, except: nil))
        var (written, consumed): (Int64, Int64) = (0, 0)
        for round in 1...200 {
            let missing = round < 200 && random.happens(20) ? Int32.random(in: 0..<4, using: &random) : nil
            for index in partitions.indices {
                let isSeen = partitions[index].partition.partition != missing
                partitions[index].step(isSeen: isSeen, mayBeCreated: round >= 100, &random)
            }
            history.take(SimulatedPartition.snapshot(of: partitions, second: Int64(round) * 10, except: missing))
            written += history.lags.map(\.writtenCount).reduce(0, +)
            consumed += history.lags.map(\.consumedCount).reduce(0, +)
        }
        #expect(partitions.allSatisfy { $0.isCreated })
        #expect(written == partitions.map(\.written).reduce(0, +))
        #expect(consumed == partitions.map(\.consumed).reduce(0, +))
    }

    /// A topic that appears after the first snapshot was empty in it, unlike one whose broker did not respond.
    @Test func messagesOfCreatedTopicCount() throws {
        func snapshot(_ second: Int64, _ available: [TopicPartition: Range<Int64>], exists: Bool) -> LagSnapshot {
            LagSnapshot(
                milliseconds: second * 1_000, available: available,
                groups: [LagSnapshot.Group(name: "g", isKnown: true, offsets: available.mapValues { _ in 5 })],
                problems: ["x": KafkaError(timeout: "x")], partitionCounts: exists ? ["t": 1] : [:])
        }
        func count(existed: Bool) throws -> [Int64] {
            var history = LagHistory()
            history.take(snapshot(0, [:], exists: existed))
            history.take(snapshot(10, [Self.partition: 0..<20], exists: true))
            let lag = try #require(history.lags.first)
            return [lag.writtenCount, lag.consumedCount]
        }
        #expect(try count(existed: false) == [20, 5])
        #expect(try count(existed: true) == [0, 0])
    }
}

/// A partition with a group, and the true numbers of messages since the first snapshot.
private struct SimulatedPartition {
    let partition: TopicPartition
    private(set) var isCreated: Bool
    private(set) var written: Int64 = 0
    private(set) var consumed: Int64 = 0
    private var first: Int64 = 0
    private var end: Int64 = 0
    private var committed: Int64?
    /// Whether the last snapshot did not contain the partition. Offsets alone do not distinguish two operations between
    /// two snapshots.
    private var isMissed = false

    init(number: Int32, isCreated: Bool, _ random: inout SplitMix64) {
        partition = TopicPartition(topic: "t", partition: number)
        self.isCreated = isCreated
        guard isCreated else { return }
        end = Int64.random(in: 0...100, using: &random)
        first = Int64.random(in: 0...end, using: &random)
        committed = random.happens(50) ? Int64.random(in: 0...end, using: &random) : nil
    }

    private var start: Int64 { max(committed ?? first, first) }

    /// - Parameter isSeen: Whether the next snapshot contains the partition.
    mutating func step(isSeen: Bool, mayBeCreated: Bool, _ random: inout SplitMix64) {
        defer { isMissed = !isSeen }
        if !isCreated {
            guard mayBeCreated else { return }
            isCreated = true
            write(Int64.random(in: 0...50, using: &random))
            return
        }
        let operation = isSeen && !isMissed ? Int.random(in: 0..<5, using: &random) : 0
        if operation == 4, end > 0 {
            create(&random)
            return
        }
        write(Int64.random(in: 0...50, using: &random))
        switch operation {
        case 2: committed = committed.map { $0 > 0 ? Int64.random(in: 0..<$0, using: &random) : $0 }
        case 3: first = Int64.random(in: first...end, using: &random)
        default: consume(Int64.random(in: 0...(end - start), using: &random))
        }
    }

    private mutating func write(_ count: Int64) {
        end += count
        written += count
    }

    private mutating func consume(_ count: Int64) {
        guard count > 0 else { return }
        committed = start + count
        consumed += count
    }

    /// The topic is deleted and created again, with fewer messages.
    private mutating func create(_ random: inout SplitMix64) {
        let old = committed
        (first, end, committed) = (0, Int64.random(in: 0..<end, using: &random), nil)
        written += end
        let count = Int64.random(in: 0...end, using: &random)
        if count != old { consume(count) }
    }

    static func snapshot(of partitions: [Self], second: Int64, except missing: Int32?) -> LagSnapshot {
        let existing = partitions.filter(\.isCreated)
        let seen = existing.filter { $0.partition.partition != missing }
        return LagSnapshot(
            milliseconds: second * 1_000,
            available: Dictionary(uniqueKeysWithValues: seen.map { ($0.partition, $0.first..<$0.end) }),
            groups: [
                LagSnapshot.Group(
                    name: "g", isKnown: true,
                    offsets: Dictionary(uniqueKeysWithValues: existing.map { ($0.partition, $0.committed) }))
            ],
            problems: missing == nil ? [:] : ["x": KafkaError(timeout: "x")],
            partitionCounts: ["t": Int32(existing.count)])
    }
}
