import Kafka
import Postgres

/// Whether the broker still has what it confirmed.
extension Relay {
    /// A broker whose partition ends below what it confirmed has lost its content.
    mutating func checkForLoss() throws {
        guard ContinuousClock.now >= nextLossCheck else { return }
        nextLossCheck = .now + Self.lossCheckInterval
        for (partition, last) in offsets {
            let end = try admin.watermarks(partition).upperBound
            if end <= last { try contentWasLost(partition, last: last, found: end) }
        }
    }

    mutating func contentWasLost(_ partition: TopicPartition, last: Int64, found: Int64) throws {
        try connection.run(RelayStore.newEpoch)
        throw ContentLost(partition: partition, last: last, found: found)
    }
}
