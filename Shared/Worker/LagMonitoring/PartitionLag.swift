package import Kafka

/// Lag of a group on one partition.
package struct PartitionLag: Equatable, Sendable {
    /// Age of the oldest unfinished message.
    package enum Age: Equatable, Sendable {
        /// By the message's timestamp.
        case exact(seconds: Double)
        /// By the partition's growth; precise to one collection interval.
        case estimated(seconds: Double)
        /// The message is older than the first snapshot.
        case atLeast(seconds: Double)

        /// The known part of the age.
        package var seconds: Double {
            switch self {
            case .exact(let seconds), .estimated(let seconds), .atLeast(let seconds): seconds
            }
        }
    }

    package let group: String
    package let partition: TopicPartition
    /// The group's next offset, and the range that was removed before it was read.
    package let beginning: Beginning
    /// Whether the group is expected to read the partition: it has members, or had some.
    package let hasConsumer: Bool
    /// `nil` without messages, or if unknown.
    package var age: Age?
    /// `nil` without a consumer, or with too few samples.
    package var status: LagStatus?
    /// Messages per second that are written; `nil` before the second snapshot.
    package var inPerSecond: Double?
    /// Messages per second that the group commits; `nil` before the second snapshot.
    package var outPerSecond: Double?
    /// Number of messages that were written since the group's previous snapshot with this partition.
    package var writtenCount: Int64 = 0
    /// Number of messages that the group consumed since then.
    package var consumedCount: Int64 = 0

    /// Estimated seconds until lag is zero; `nil` while it grows.
    package var drainSeconds: Double? {
        DrainRule.seconds(lag: count, inPerSecond: inPerSecond, outPerSecond: outPerSecond)
    }

    /// Number of available, unfinished messages.
    package var count: Int64 { beginning.end - beginning.start }
    /// Number of messages that were removed before the group read them.
    package var expiredCount: Int64 { Int64(beginning.expired.count) }
}
