import Kafka
import TestSupport
import Testing

@testable import KeyedWorker

@Suite(.ownThreads) struct OffsetGapsTests {
    private let partition = TopicPartition(topic: "t", partition: 0)

    /// Compaction and aborted transactions leave permanent gaps.
    @Test func permanentGapsAreRereadOnce() throws {
        let offsets: [Int64] = [0, 1, 2, 5, 6, 9, 10, 20]
        var gaps = OffsetGaps()
        var rereadCount = 0
        var index = 1
        while index < offsets.count {
            let (offset, expected) = (offsets[index], offsets[index - 1] + 1)
            let gap = try gaps.gap(before: offset, expected: expected, in: partition) { 0 }
            index += 1
            guard gap != nil else { continue }
            #expect(gap == .unexplained)
            gaps.didReread(before: offset, expected: expected, in: partition)
            rereadCount += 1
            try #require(rereadCount < 10)
            index = 1
        }
        #expect(rereadCount == 1)
    }

    @Test func removedOffsetsAreReportedOnce() throws {
        var gaps = OffsetGaps()
        let gap = try gaps.gap(before: 12, expected: 4, in: partition) { 10 }
        #expect(gap == .removed(ExpiredOffsets(partition: partition, offsets: 4..<12)))
        gaps.resolve(before: 12, in: partition)
        let same = try gaps.gap(before: 12, expected: 4, in: partition) { 10 }
        #expect(same == nil)
        let next = try gaps.gap(before: 30, expected: 13, in: partition) { 30 }
        #expect(next == .removed(ExpiredOffsets(partition: partition, offsets: 13..<30)))
    }

    @Test func restartedBrokerIsRereadEachTime() throws {
        var gaps = OffsetGaps()
        for _ in 0..<3 {
            let gap = try gaps.gap(before: 0, expected: 4, in: partition) { 0 }
            #expect(gap == .unexplained)
            gaps.didReread(before: 0, expected: 4, in: partition)
        }
    }
}
