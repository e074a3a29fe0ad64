import DequeModule
import Synchronization

/// Which messages of one partition are unfinished, from an assignment or a seek to the next.
///
/// Pure bookkeeping: it knows no librdkafka.
final class PartitionTracker {
    let partition: TopicPartition
    /// No other tracker of this process has it.
    let serial = PartitionTracker.serials.add(1, ordering: .relaxed).newValue
    private static let serials = Atomic<Int>(0)
    /// Turns false when the partition is taken away or sought: what is finished afterwards no longer counts.
    private(set) var isOpen = true
    /// The offset after the last message that was delivered; `nil` before the first.
    private(set) var next: Int64?
    /// Where delivery begins; `nil` until that is known.
    private var start: Int64?
    /// What was last stored for the next commit.
    var stored: Int64?
    /// Something was delivered since the assignment, if before a seek: librdkafka is done with starting it.
    private(set) var isStarted: Bool
    /// librdkafka was told to pause it.
    var isPaused: Bool

    /// Delivered messages from the lowest unfinished one on.
    private var entries: Deque<Entry> = []
    /// The slot of the first of `entries`.
    private var firstSlot = 0

    private struct Entry {
        let offset: Int64
        let timestamp: Int64
        var isFinished = false
    }

    init(_ partition: TopicPartition) {
        self.partition = partition
        isStarted = false
        isPaused = false
    }

    /// Goes on in the same assignment, after a seek.
    init(after tracker: PartitionTracker) {
        partition = tracker.partition
        isStarted = tracker.isStarted
        isPaused = tracker.isPaused
    }

    /// The offset of the message that is to be delivered next; `nil` until that is known.
    var expected: Int64? { next ?? start }

    /// Counts a message that is about to be delivered. `offset` must not be below `next`.
    ///
    /// - Returns: The slot under which it is finished, and the offset at which it would lie if none were missing.
    func deliver(offset: Int64, timestamp: Int64) -> (slot: Int, expected: Int64) {
        // Where delivery begins is asked beside it, and may have moved on since.
        let expected = next ?? start.map { min($0, offset) } ?? offset
        next = offset + 1
        isStarted = true
        entries.append(Entry(offset: offset, timestamp: timestamp))
        return (firstSlot + entries.count - 1, expected)
    }

    /// Says where delivery begins. Means nothing after the first message.
    func begin(at offset: Int64) { start = offset }

    func finish(slot: Int) {
        let index = slot - firstSlot
        guard isOpen, entries.indices.contains(index) else { return }
        entries[index].isFinished = true
        while let first = entries.first, first.isFinished {
            entries.removeFirst()
            firstSlot += 1
        }
    }

    /// Everything below it is finished: the offset to commit. `nil` before the first delivery.
    var finishedBelow: Int64? { entries.first?.offset ?? next }

    var unfinishedCount: Int { entries.count { !$0.isFinished } }

    /// When the lowest unfinished message was written: milliseconds since 1970.
    var oldestUnfinishedTimestamp: Int64? { entries.first?.timestamp }

    func close() { isOpen = false }
}
