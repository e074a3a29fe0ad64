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
    /// Marks messages as finished, in any order, and stores the lowest unfinished offset of each affected partition for
    /// the next commit, at the next interval and when the consumer closes. Messages of an earlier assignment, or from
    /// before a seek, are ignored.
    package mutating func finish(_ messages: some Sequence<Message>) { finish(messages.map(\.receipt)) }

    /// Marks messages as finished by their receipts.
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
