import Essentials
import Kafka
package import Telemetry

/// Lag metrics in Prometheus' text format, with the names that users of kafka-lag-exporter and KMinion expect. Other
/// metrics begin with `fieldpost_`.
package struct LagPage {
    package var metrics = MetricsPage()
    private let cluster: String
    /// Maximum number of partitions of groups that are exported individually.
    private let partitionCountMax: Int

    package init(cluster: String, partitionCountMax: Int) {
        self.cluster = cluster
        self.partitionCountMax = partitionCountMax
    }

    /// Exports groups by topic and by partition. If there are too many partitions, only those with a problem are
    /// exported.
    ///
    /// - Parameters:
    ///   - lags: Ordered by group, topic and partition.
    ///   - retentions: Retention by topic, in seconds.
    package mutating func export(_ lags: [PartitionLag], retentions: [String: Double] = [:]) {
        exportPartitions(lags)
        exportGroupPartitions(lags)
        let sums = LagSum.sums(of: lags)
        for sum in sums { export(sum, retention: retentions[sum.topic]) }
        for (group, sums) in Dictionary(grouping: sums, by: \.group).sorted(by: { $0.key < $1.key }) {
            let labels = MetricsPage.Labels(labels(group))
            metrics.add("kafka_consumergroup_group_sum_lag", labels, Double(sums.map(\.count).reduce(0, +)))
            metrics.add("kafka_consumergroup_group_max_lag", labels, Double(sums.map(\.countMax).max() ?? 0))
            // If messages wait and their age is unknown, the age is absent, not 0.
            let age = sums.compactMap(\.secondsMax).max() ?? (sums.allSatisfy { $0.count == 0 } ? 0 : nil)
            if let age { metrics.add("kafka_consumergroup_group_max_lag_seconds", labels, age) }
        }
        for topic in Set(sums.map(\.topic)).sorted() {
            guard let seconds = retentions[topic] else { continue }
            metrics.add("fieldpost_topic_retention_seconds", labels(nil, topic), seconds)
        }
    }

    /// Exports the offsets of each partition once, and the write rate of topics.
    private mutating func exportPartitions(_ lags: [PartitionLag]) {
        var exported: Set<TopicPartition> = []
        var series: (topic: String, labels: MetricsPage.NumberedLabels)?
        var pace: [String: Double] = [:]
        for lag in lags where exported.insert(lag.partition).inserted {
            let topic = lag.partition.topic
            if series?.topic != topic { series = (topic, numbered(labels(nil, topic))) }
            if let inRate = lag.inPerSecond { pace[topic, default: 0] += inRate }
            guard let partitionLabels = series?.labels[lag.partition.partition] else { continue }
            metrics.add("kafka_partition_earliest_offset", partitionLabels, Double(lag.beginning.first))
            metrics.add("kafka_partition_latest_offset", partitionLabels, Double(lag.beginning.end))
        }
        for (topic, inRate) in pace.sorted(by: { $0.key < $1.key }) {
            metrics.add("fieldpost_topic_messages_per_second", labels(nil, topic), Self.rounded(inRate))
        }
    }

    /// Exports groups by partition. Values of 0 are omitted, except for the lag itself.
    private mutating func exportGroupPartitions(_ lags: [PartitionLag]) {
        let isBrief = lags.count > partitionCountMax
        metrics.add("fieldpost_monitor_partitions_exported", [], isBrief ? 0 : 1)
        var series: (group: String, topic: String, labels: MetricsPage.NumberedLabels)?
        for lag in isBrief ? Self.worst(lags, partitionCountMax) : lags {
            let topic = lag.partition.topic
            if series?.group != lag.group || series?.topic != topic {
                series = (lag.group, topic, numbered(labels(lag.group, topic)))
            }
            guard let partitionLabels = series?.labels[lag.partition.partition] else { continue }
            metrics.add("kafka_consumergroup_group_lag", partitionLabels, Double(lag.count))
            if let committed = lag.beginning.committed {
                metrics.add("kafka_consumergroup_group_offset", partitionLabels, Double(committed))
            }
            if lag.hasConsumer, lag.expiredCount > 0 {
                metrics.add("fieldpost_lag_expired_messages", partitionLabels, Double(lag.expiredCount))
            }
            if let status = lag.status, status != .ok {
                metrics.add("fieldpost_lag_status", partitionLabels, Double(status.number))
            }
            // Absent without messages, and if the age is unknown.
            if let age = lag.age {
                metrics.add("kafka_consumergroup_group_lag_seconds", partitionLabels, age.seconds)
                let isExact = if case .exact = age { true } else { false }
                metrics.add("fieldpost_lag_seconds_exact", partitionLabels, isExact ? 1 : 0)
            }
        }
    }

    /// The partitions with a problem, in the order of `lags`; beyond `countMax`, only the worst.
    package static func worst(_ lags: [PartitionLag], _ countMax: Int) -> [PartitionLag] {
        let wrong = lags.indices.filter { index in
            lags[index].hasConsumer && (lags[index].expiredCount > 0 || lags[index].status ?? .ok != .ok)
        }
        if wrong.count <= countMax { return wrong.map { lags[$0] } }
        let chosen = wrong.sorted { left, right in
            let (a, b) = (lags[left], lags[right])
            return (a.expiredCount, a.status?.number ?? 0, a.count, right)
                > (b.expiredCount, b.status?.number ?? 0, b.count, left)
        }
        return chosen.prefix(countMax).sorted().map { lags[$0] }
    }

    private mutating func export(_ sum: LagSum, retention: Double?) {
        let labels = MetricsPage.Labels(labels(sum.group, sum.topic))
        metrics.add("kafka_consumergroup_group_topic_sum_lag", labels, Double(sum.count))
        if let status = sum.status { metrics.add("fieldpost_lag_worst_status", labels, Double(status.number)) }
        if let outRate = sum.outPerSecond {
            metrics.add("fieldpost_group_messages_per_second", labels, Self.rounded(outRate))
        }
        if let seconds = sum.drainSeconds {
            metrics.add("fieldpost_lag_drain_seconds", labels, Self.rounded(seconds))
        }
        if let retention, let seconds = sum.retentionHeadroomSeconds(retention: retention) {
            metrics.add("fieldpost_retention_headroom_seconds", labels, Self.rounded(seconds))
        }
    }

    /// Exports the number of members and rebalances of groups.
    package mutating func export(
        _ groups: [LagSnapshot.Group], rebalances: [(group: String, count: Int)]
    ) {
        for group in groups {
            guard let count = group.memberCount else { continue }
            metrics.add("fieldpost_group_members", labels(group.name), Double(count))
        }
        for (group, count) in rebalances {
            metrics.add("fieldpost_group_rebalances_total", labels(group), Double(count))
        }
    }

    /// Three decimals suffice, and keep the page small.
    private static func rounded(_ value: Double) -> Double { (value * 1_000).rounded() / 1_000 }

    /// The labels of a series.
    package func labels(_ group: String? = nil, _ topic: String? = nil) -> [(String, String)] {
        var labels = [("cluster_name", cluster)]
        if let group { labels.append(("group", group)) }
        if let topic { labels.append(("topic", topic)) }
        return labels
    }

    private func numbered(_ labels: [(String, String)]) -> MetricsPage.NumberedLabels {
        MetricsPage.NumberedLabels(labels, numbered: "partition")
    }
}
