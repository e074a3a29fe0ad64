import Kafka

/// How far a group is behind on a topic: its partitions together.
package struct LagSum: Equatable, Sendable {
    package let group: String
    package let topic: String
    /// Messages that are not finished; of all partitions, and the most of one.
    package private(set) var count: Int64 = 0
    package private(set) var countMax: Int64 = 0
    /// How long the oldest of them waits, in seconds; `nil` when nothing does, nobody reads there, or it is not known.
    package private(set) var secondsMax: Double?
    /// How it fares where it fares worst.
    package private(set) var status: LagStatus?
    /// Messages a second; `nil` as long as nothing is known.
    package private(set) var comesPerSecond: Double?
    package private(set) var goesPerSecond: Double?
    /// How old the oldest message is that is not read by somebody who is expected to; what was there at the first look
    /// is of unknown age, and does not count.
    private var knownAgeMax: Double?

    init(group: String, topic: String) {
        self.group = group
        self.topic = topic
    }

    /// - Parameter lags: Ordered by group and topic.
    /// - Returns: In the same order.
    package static func sums(of lags: [PartitionLag]) -> [LagSum] {
        var sums: [LagSum] = []
        for lag in lags {
            if sums.last?.group != lag.group || sums.last?.topic != lag.partition.topic {
                sums.append(LagSum(group: lag.group, topic: lag.partition.topic))
            }
            sums[sums.count - 1].add(lag)
        }
        return sums
    }

    private mutating func add(_ lag: PartitionLag) {
        count += lag.count
        countMax = max(countMax, lag.count)
        if let worse = lag.status { status = max(worse, status ?? worse) }
        if let comes = lag.comesPerSecond { comesPerSecond = (comesPerSecond ?? 0) + comes }
        if let goes = lag.goesPerSecond { goesPerSecond = (goesPerSecond ?? 0) + goes }
        guard lag.isFollowed, let age = lag.age else { return }
        secondsMax = max(secondsMax ?? 0, age.seconds)
        switch age {
        case .exact(let seconds), .estimated(let seconds): knownAgeMax = max(knownAgeMax ?? 0, seconds)
        case .atLeast: break
        }
    }

    /// When nothing waits any more if all goes on as it does, in seconds; `nil` when it grows.
    package var closesSeconds: Double? {
        ClosingRule.seconds(lag: count, comes: comesPerSecond, goes: goesPerSecond)
    }

    /// How long the oldest message that is not read will be there at least, in seconds.
    package func headroomSeconds(retention: Double) -> Double? {
        knownAgeMax.map { RetentionRule.headroom(age: $0, retention: retention) }
    }
}
