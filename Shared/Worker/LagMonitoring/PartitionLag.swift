package import Kafka

/// How far a group is behind on one partition.
package struct PartitionLag: Equatable, Sendable {
    /// For how long the oldest unfinished message waits.
    package enum Age: Equatable, Sendable {
        /// By the time that the message itself has.
        case exact(seconds: Double)
        /// By when the partition was seen to grow: right to the time between two looks.
        case estimated(seconds: Double)
        /// It was there at the first look.
        case atLeast(seconds: Double)

        /// What there is of it.
        package var seconds: Double {
            switch self {
            case .exact(let seconds), .estimated(let seconds), .atLeast(let seconds): seconds
            }
        }
    }

    package let group: String
    package let partition: TopicPartition
    /// Where it goes on, and what it has not read though it was removed.
    package let beginning: Beginning
    /// Whether somebody reads there, or did while it was looked.
    package let isFollowed: Bool
    /// `nil`: there is nothing to wait, or it is not known.
    package var age: Age?
    /// `nil`: nobody is expected to read there, or it was not looked at often enough to say.
    package var status: LagStatus?
    /// Messages a second that are written there; `nil` before the second look.
    package var comesPerSecond: Double?
    /// Messages a second that the group finishes there; `nil` before the second look at what it has committed.
    package var goesPerSecond: Double?

    /// Whether its age is what the message itself says; that of nothing is known.
    package var isAgeExact: Bool {
        switch age {
        case .exact: true
        case .estimated, .atLeast: false
        case nil: count == 0
        }
    }

    /// When nothing waits any more if all goes on as it does, in seconds; `nil` when it grows.
    package var closesSeconds: Double? {
        ClosingRule.seconds(lag: count, comes: comesPerSecond, goes: goesPerSecond)
    }

    /// Messages that are there and not finished.
    package var count: Int64 { beginning.end - beginning.start }
    /// Messages that were removed before the group read them.
    package var expiredCount: Int64 { Int64(beginning.expired.count) }
}
