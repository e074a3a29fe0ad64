/// A reference to a received, unfinished message, with which `Consumer.finish` marks it as finished.
///
/// Has no effect after the partition was revoked or sought.
package struct Receipt: Hashable, Sendable {
    package let partition: TopicPartition
    let tracker: Int
    let slot: Int
}

extension Message {
    package var receipt: Receipt { Receipt(partition: tracker.partition, tracker: tracker.serial, slot: slot) }
}

extension Consumer {
    /// Marks messages as finished and stores the offsets to commit, at the next interval and when the consumer closes.
    package mutating func finish(_ receipts: some Sequence<Receipt>) {
        var touched: [PartitionTracker] = []
        var last: PartitionTracker?
        for receipt in receipts {
            if last?.serial != receipt.tracker { last = context.trackers[receipt.partition] }
            guard let tracker = last, tracker.serial == receipt.tracker else { continue }
            tracker.finish(slot: receipt.slot)
            if touched.last !== tracker, !touched.contains(where: { $0 === tracker }) { touched.append(tracker) }
        }
        store(touched)
    }
}
