/// What is kept of a message that is read, and not finished yet: with it `Consumer.finish` finds its place again.
///
/// It means nothing once its partition went to another consumer or was sought.
package struct Receipt: Hashable, Sendable {
    package let partition: TopicPartition
    let tracker: Int
    let slot: Int
}

extension Message {
    package var receipt: Receipt { Receipt(partition: tracker.partition, tracker: tracker.serial, slot: slot) }
}

extension Consumer {
    /// Stores the offsets below which everything is finished; they are committed later, and when the consumer closes.
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
