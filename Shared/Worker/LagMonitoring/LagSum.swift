import Kafka

/// Lag of a group on a topic, summed over its partitions.
package struct LagSum: Equatable, Sendable {
    package let group: String
    package let topic: String
    /// Number of unfinished messages: of all partitions, and the maximum of one.
    package private(set) var count: Int64 = 0
    package private(set) var countMax: Int64 = 0
    /// Age of the oldest unfinished message, in seconds; `nil` without messages, without a consumer, or if unknown.
    package private(set) var secondsMax: Double?
    /// The worst status of a partition.
    package private(set) var status: LagStatus?
    /// Messages per second; `nil` if unknown.
    package private(set) var inPerSecond: Double?
    package private(set) var outPerSecond: Double?
    /// Number of messages that were written, and that the group consumed, since the previous snapshot.
    package private(set) var writtenCount: Int64 = 0
    package private(set) var consumedCount: Int64 = 0
    /// Known age of the oldest unread message of partitions with a consumer. Messages from before the first snapshot do
    /// not count: their age is unknown.
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
        writtenCount += lag.writtenCount
        consumedCount += lag.consumedCount
        if let other = lag.status { status = max(other, status ?? other) }
        if let rate = lag.inPerSecond { inPerSecond = (inPerSecond ?? 0) + rate }
        if let rate = lag.outPerSecond { outPerSecond = (outPerSecond ?? 0) + rate }
        guard lag.hasConsumer, let age = lag.age else { return }
        secondsMax = max(secondsMax ?? 0, age.seconds)
        switch age {
        case .exact(let seconds), .estimated(let seconds): knownAgeMax = max(knownAgeMax ?? 0, seconds)
        case .atLeast: break
        }
    }

    /// Estimated seconds until lag is zero; `nil` while it grows.
    package var drainSeconds: Double? {
        DrainRule.seconds(lag: count, inPerSecond: inPerSecond, outPerSecond: outPerSecond)
    }

    /// Minimum time until Kafka removes the oldest unread message, in seconds.
    package func retentionHeadroomSeconds(retention: Double) -> Double? {
        knownAgeMax.map { RetentionRule.headroom(age: $0, retention: retention) }
    }
}
