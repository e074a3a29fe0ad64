import TestSupport
import Testing

@testable import Kafka

@Suite(.ownThreads) struct PartitionTrackerTests {
    @Test func unfinishedMessageBlocksLaterOffsets() {
        let tracker = PartitionTracker(TopicPartition(topic: "t", partition: 0))
        #expect(tracker.finishedBelow == nil)
        let slots = (5..<10).map { tracker.deliver(offset: $0).slot }
        #expect(tracker.finishedBelow == 5)
        tracker.finish(slot: slots[2])
        #expect(tracker.finishedBelow == 5)
        tracker.finish(slot: slots[0])
        #expect(tracker.finishedBelow == 6)
        tracker.finish(slot: slots[1])
        #expect(tracker.finishedBelow == 8)
        tracker.finish(slot: slots[1])
        #expect(tracker.finishedBelow == 8)
        tracker.finish(slot: slots[3])
        tracker.finish(slot: slots[4])
        #expect(tracker.finishedBelow == 10)
    }

    @Test func gapIsDetectedExceptAtUnknownStart() {
        let tracker = PartitionTracker(TopicPartition(topic: "t", partition: 0))
        #expect(tracker.deliver(offset: 7).expected == 7)
        #expect(tracker.deliver(offset: 8).expected == 8)
        #expect(tracker.deliver(offset: 10).expected == 9)
    }

    @Test func gapIsDetectedAtReportedStart() {
        for (start, expected) in [(5 as Int64, 5 as Int64), (7, 7), (9, 7)] {
            let tracker = PartitionTracker(TopicPartition(topic: "t", partition: 0))
            tracker.begin(at: start)
            #expect(tracker.deliver(offset: 7).expected == expected)
        }
    }

    @Test func finishAfterRevocationHasNoEffect() {
        let tracker = PartitionTracker(TopicPartition(topic: "t", partition: 0))
        let slot = tracker.deliver(offset: 1).slot
        tracker.close()
        tracker.finish(slot: slot)
        #expect(tracker.finishedBelow == 1)
    }

    @Test func finishingInAnyOrderReachesTheEnd() {
        var random = SystemRandomNumberGenerator()
        let tracker = PartitionTracker(TopicPartition(topic: "t", partition: 0))
        var unfinished: [(offset: Int64, slot: Int)] = []
        for offset in 0..<20_000 as Range<Int64> {
            unfinished.append((offset, tracker.deliver(offset: offset).slot))
            guard unfinished.count > 100 else { continue }
            tracker.finish(slot: unfinished.remove(at: Int.random(in: 0..<100, using: &random)).slot)
        }
        // No unfinished message was dropped.
        while let first = unfinished.first {
            #expect(tracker.finishedBelow == first.offset)
            tracker.finish(slot: unfinished.remove(at: Int.random(in: unfinished.indices, using: &random)).slot)
        }
        #expect(tracker.finishedBelow == 20_000)
    }
}
