import Testing

@testable import Kafka

@Suite struct PartitionTrackerTests {
    @Test func unfinishedMessageBlocksLaterOffsets() {
        let tracker = PartitionTracker(TopicPartition(topic: "t", partition: 0))
        #expect(tracker.finishedBelow == nil)
        let slots = (5..<10).map { tracker.deliver(offset: $0, timestamp: $0 * 10).slot }
        #expect(tracker.finishedBelow == 5)
        tracker.finish(slot: slots[2])
        #expect(tracker.finishedBelow == 5)
        tracker.finish(slot: slots[0])
        #expect(tracker.finishedBelow == 6)
        #expect(tracker.oldestUnfinishedTimestamp == 60)
        tracker.finish(slot: slots[1])
        #expect(tracker.finishedBelow == 8)
        tracker.finish(slot: slots[1])
        #expect(tracker.unfinishedCount == 2)
        tracker.finish(slot: slots[3])
        tracker.finish(slot: slots[4])
        #expect(tracker.finishedBelow == 10)
        #expect(tracker.oldestUnfinishedTimestamp == nil)
    }

    @Test func gapIsDetectedExceptAtUnknownStart() {
        let tracker = PartitionTracker(TopicPartition(topic: "t", partition: 0))
        #expect(tracker.deliver(offset: 7, timestamp: 0).expected == 7)
        #expect(tracker.deliver(offset: 8, timestamp: 0).expected == 8)
        #expect(tracker.deliver(offset: 10, timestamp: 0).expected == 9)
    }

    @Test func gapIsDetectedAtReportedStart() {
        for (start, expected) in [(5 as Int64, 5 as Int64), (7, 7), (9, 7)] {
            let tracker = PartitionTracker(TopicPartition(topic: "t", partition: 0))
            tracker.begin(at: start)
            #expect(tracker.deliver(offset: 7, timestamp: 0).expected == expected)
        }
    }

    @Test func finishAfterRevocationHasNoEffect() {
        let tracker = PartitionTracker(TopicPartition(topic: "t", partition: 0))
        let slot = tracker.deliver(offset: 1, timestamp: 0).slot
        tracker.close()
        tracker.finish(slot: slot)
        #expect(tracker.finishedBelow == 1)
    }

    @Test func finishingInAnyOrderReachesTheEnd() {
        var random = SystemRandomNumberGenerator()
        let tracker = PartitionTracker(TopicPartition(topic: "t", partition: 0))
        var open: [Int] = []
        for offset in 0..<20_000 as Range<Int64> {
            open.append(tracker.deliver(offset: offset, timestamp: 0).slot)
            if open.count > 100 { tracker.finish(slot: open.remove(at: Int.random(in: 0..<100, using: &random))) }
        }
        #expect(tracker.unfinishedCount == 100)
        for slot in open.shuffled(using: &random) { tracker.finish(slot: slot) }
        #expect(tracker.finishedBelow == 20_000)
    }
}
