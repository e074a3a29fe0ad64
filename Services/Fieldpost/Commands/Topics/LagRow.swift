import Kafka
import LagMonitoring

/// The lag of a group on one partition, or on all partitions of a topic.
struct LagRow: Encodable {
    let topic: String
    /// `nil` for the sum of a topic's partitions.
    let partition: Int32?
    let group: String
    /// The committed offset; `nil` if there is none.
    let committed: Int64?
    /// `nil` if the broker did not report it.
    let end: Int64?
    /// `nil` if unknown; of a sum: that of the partitions whose lag is known.
    let lag: Int64?
    /// The age of the oldest uncommitted message; `nil` if there is none, or the age is unknown.
    let oldestAgeMs: Int64?
    /// Number of messages that expired before the group read them. The group requests them again when it runs.
    let expired: Int64?
    /// Messages per second that are written, measured with `--watch`.
    let inRate: Double?
    /// Messages per second that the group commits, measured with `--watch`.
    let rate: Double?
    /// The consumer-group status, by Burrow's rules, measured with `--watch`.
    let status: String?
    /// Estimated time until the lag is zero; `nil` if it grows, or without `--watch`.
    let drainMs: Int64?
    /// Number of partitions, and of those that have a lag or an unknown lag.
    let partitionCount: Int
    let behindCount: Int
    /// Number of partitions whose lag is unknown.
    let unknownCount: Int

    private enum CodingKeys: String, CodingKey {
        case topic, partition, group, committed, end, lag, oldestAgeMs, expired, inRate, rate, status, drainMs
    }

    init(_ partition: TopicPartition, group: String, _ lag: PartitionLag?) {
        topic = partition.topic
        self.partition = partition.partition
        self.group = group
        committed = lag?.beginning.committed
        end = lag?.beginning.end
        self.lag = lag?.count
        oldestAgeMs = lag?.age.flatMap { age in
            if case .exact(let seconds) = age { Int64(seconds * 1_000) } else { nil }
        }
        expired = lag?.expiredCount
        (inRate, rate, status) = (lag?.inPerSecond, lag?.outPerSecond, lag?.status?.rawValue)
        drainMs = Self.drainMs(lag?.count, lag?.inPerSecond, lag?.outPerSecond)
        (partitionCount, behindCount, unknownCount) = (1, lag?.count == 0 ? 0 : 1, lag == nil ? 1 : 0)
    }

    /// Creates the sum of the partitions of one group and topic, with the worst status.
    ///
    /// - Parameter rows: At least one.
    init(sum rows: [LagRow]) {
        func sum(_ values: [Int64]) -> Int64? { values.isEmpty ? nil : values.reduce(0, +) }
        func rates(_ values: [Double]) -> Double? { values.isEmpty ? nil : values.reduce(0, +) }
        (topic, group, partition) = (rows[0].topic, rows[0].group, nil)
        (committed, end) = (nil, nil)
        lag = sum(rows.compactMap(\.lag))
        oldestAgeMs = rows.compactMap(\.oldestAgeMs).max()
        expired = sum(rows.compactMap(\.expired))
        (inRate, rate) = (rates(rows.compactMap(\.inRate)), rates(rows.compactMap(\.rate)))
        status = rows.compactMap(\.status).compactMap(LagStatus.init(rawValue:)).max()?.rawValue
        drainMs = Self.drainMs(lag, inRate, rate)
        partitionCount = rows.map(\.partitionCount).reduce(0, +)
        behindCount = rows.map(\.behindCount).reduce(0, +)
        unknownCount = rows.map(\.unknownCount).reduce(0, +)
    }

    private static func drainMs(_ lag: Int64?, _ inRate: Double?, _ rate: Double?) -> Int64? {
        guard let lag, let rate else { return nil }
        return DrainRule.seconds(lag: lag, inPerSecond: inRate, outPerSecond: rate).flatMap {
            Int64(exactly: ($0 * 1_000).rounded())
        }
    }

    /// Whether it has a lag, an unknown lag or expired messages.
    var isBehind: Bool { behindCount > 0 || expired != 0 }

    /// Returns a row for each group and topic, in the order of their first rows.
    static func sums(of rows: [LagRow]) -> [LagRow] {
        var order: [[String]] = []
        var groups: [[String]: [LagRow]] = [:]
        for row in rows {
            let name = [row.topic, row.group]
            if groups[name] == nil { order.append(name) }
            groups[name, default: []].append(row)
        }
        return order.compactMap { groups[$0] }.map { LagRow(sum: $0) }
    }

    /// Returns the rows with the worst first: by expired messages, status, unknown lag, lag and age.
    static func worstFirst(_ rows: [LagRow]) -> [LagRow] {
        rows.sorted { left, right in
            let (a, b) = (left.severity, right.severity)
            if a != b { return a > b }
            return (left.topic, left.group, left.partition ?? 0) < (right.topic, right.group, right.partition ?? 0)
        }
    }

    private var severity: (Int64, Int, Int, Int64, Int64) {
        let number = status.flatMap(LagStatus.init(rawValue:))?.number ?? 0
        return (expired ?? 0, number, unknownCount, lag ?? 0, oldestAgeMs ?? 0)
    }
}
