import DequeModule
import Synchronization

/// The unfinished messages of one partition, from an assignment or a seek to the next.
///
/// Pure bookkeeping, independent of librdkafka.
final class PartitionTracker {
    let partition: TopicPartition
    /// Unique in this process.
    let serial = PartitionTracker.serials.add(1, ordering: .relaxed).newValue
    private static let serials = Atomic<Int>(0)
    /// False after a revocation or a seek: finishing messages then has no effect.
    private(set) var isOpen = true
    /// The offset after the last delivered message; `nil` before the first.
    private(set) var next: Int64?
    /// The offset at which delivery starts; `nil` until it is determined.
    private var start: Int64?
    /// The offset that was last stored for a commit.
    var stored: Int64?
    /// Whether a message was delivered since the assignment, possibly before a seek: librdkafka's start of the
    /// partition is complete.
    private(set) var isStarted = false
    /// Whether librdkafka has paused it.
    var isPaused = false

    /// Delivered messages, starting with the lowest unfinished one.
    private var entries: Deque<Entry> = []
    /// The slot of the first of `entries`.
    private var firstSlot = 0

    private struct Entry {
        let offset: Int64
        var isFinished = false
    }

    init(_ partition: TopicPartition) { self.partition = partition }

    /// Continues in the same assignment after a seek.
    init(after tracker: PartitionTracker) {
        partition = tracker.partition
        isStarted = tracker.isStarted
        isPaused = tracker.isPaused
    }

    /// The offset of the next message to deliver; `nil` until it is determined.
    var expected: Int64? { next ?? start }

    /// Records a message that is being delivered. `offset` must not be below `next`.
    ///
    /// - Returns: The slot with which it is finished, and the offset that it would have without a gap.
    func deliver(offset: Int64) -> (slot: Int, expected: Int64) {
        // The start of delivery is queried separately, and may have moved meanwhile.
        let expected = next ?? start.map { min($0, offset) } ?? offset
        next = offset + 1
        isStarted = true
        entries.append(Entry(offset: offset))
        return (firstSlot + entries.count - 1, expected)
    }

    /// Sets the start of delivery. Has no effect after the first message.
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

    /// The offset to commit: all lower ones are finished. `nil` before the first delivery.
    var finishedBelow: Int64? { entries.first?.offset ?? next }

    func close() { isOpen = false }
}
