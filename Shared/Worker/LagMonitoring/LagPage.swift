import Essentials
import Kafka
package import Telemetry

/// What is told in Prometheus' text, under the names that users of kafka-lag-exporter and KMinion know; what these do
/// not tell begins with `fieldpost_`.
package struct LagPage {
    package var metrics = MetricsPage()
    private let cluster: String
    /// So many partitions of groups are told of one by one at most.
    private let placeMax: Int

    package init(cluster: String, placeMax: Int) {
        self.cluster = cluster
        self.placeMax = placeMax
    }

    /// Groups by their topics, and by their partitions as far as these are not too many: then only those partitions are
    /// told of on which something is wrong.
    ///
    /// - Parameters:
    ///   - lags: Ordered by group, topic and partition.
    ///   - retentions: By topic, for how many seconds it keeps messages.
    package mutating func tell(_ lags: [PartitionLag], retentions: [String: Double] = [:]) {
        tellPartitions(lags)
        tellPlaces(lags)
        let sums = LagSum.sums(of: lags)
        for sum in sums { tell(sum, retention: retentions[sum.topic]) }
        for (group, sums) in Dictionary(grouping: sums, by: \.group).sorted(by: { $0.key < $1.key }) {
            let labels = MetricsPage.Labels(labels(group))
            metrics.add("kafka_consumergroup_group_sum_lag", labels, Double(sums.map(\.count).reduce(0, +)))
            metrics.add("kafka_consumergroup_group_max_lag", labels, Double(sums.map(\.countMax).max() ?? 0))
            // Where messages wait and nothing is known of their age, it is not told as none.
            let age = sums.compactMap(\.secondsMax).max() ?? (sums.allSatisfy { $0.count == 0 } ? 0 : nil)
            if let age { metrics.add("kafka_consumergroup_group_max_lag_seconds", labels, age) }
        }
        for topic in Set(sums.map(\.topic)).sorted() {
            guard let seconds = retentions[topic] else { continue }
            metrics.add("fieldpost_topic_retention_seconds", labels(nil, topic), seconds)
        }
    }

    /// What there is of each partition, once, and how fast topics grow.
    private mutating func tellPartitions(_ lags: [PartitionLag]) {
        var told: Set<TopicPartition> = []
        var series: (topic: String, labels: MetricsPage.NumberedLabels)?
        var pace: [String: Double] = [:]
        for lag in lags where told.insert(lag.partition).inserted {
            let topic = lag.partition.topic
            if series?.topic != topic { series = (topic, numbered(labels(nil, topic))) }
            if let comes = lag.comesPerSecond { pace[topic, default: 0] += comes }
            guard let place = series?.labels[lag.partition.partition] else { continue }
            metrics.add("kafka_partition_earliest_offset", place, Double(lag.beginning.first))
            metrics.add("kafka_partition_latest_offset", place, Double(lag.beginning.end))
        }
        for (topic, comes) in pace.sorted(by: { $0.key < $1.key }) {
            metrics.add("fieldpost_topic_messages_per_second", labels(nil, topic), Self.rounded(comes))
        }
    }

    /// Of what is 0 only the lag itself is told: by topic there is everything.
    private mutating func tellPlaces(_ lags: [PartitionLag]) {
        let isBrief = lags.count > placeMax
        metrics.add("fieldpost_monitor_partitions_are_told", [], isBrief ? 0 : 1)
        var series: (group: String, topic: String, labels: MetricsPage.NumberedLabels)?
        for lag in isBrief ? Self.worst(lags, placeMax) : lags {
            let topic = lag.partition.topic
            if series?.group != lag.group || series?.topic != topic {
                series = (lag.group, topic, numbered(labels(lag.group, topic)))
            }
            guard let place = series?.labels[lag.partition.partition] else { continue }
            metrics.add("kafka_consumergroup_group_lag", place, Double(lag.count))
            if let committed = lag.beginning.committed {
                metrics.add("kafka_consumergroup_group_offset", place, Double(committed))
            }
            if lag.isFollowed, lag.expiredCount > 0 {
                metrics.add("fieldpost_lag_expired_messages", place, Double(lag.expiredCount))
            }
            if let status = lag.status, status != .ok {
                metrics.add("fieldpost_lag_status", place, Double(status.number))
            }
            // Without messages nothing waits; of messages whose age is not known nothing is said.
            if let age = lag.age {
                metrics.add("kafka_consumergroup_group_lag_seconds", place, age.seconds)
                metrics.add("fieldpost_lag_seconds_are_exact", place, lag.isAgeExact ? 1 : 0)
            }
        }
    }

    /// The partitions on which something is wrong, the worst first where they are too many; in the order of `lags`.
    static func worst(_ lags: [PartitionLag], _ countMax: Int) -> [PartitionLag] {
        let wrong = lags.indices.filter { index in
            lags[index].isFollowed && (lags[index].expiredCount > 0 || lags[index].status ?? .ok != .ok)
        }
        if wrong.count <= countMax { return wrong.map { lags[$0] } }
        let chosen = wrong.sorted { left, right in
            let (a, b) = (lags[left], lags[right])
            return (a.expiredCount, a.status?.number ?? 0, a.count, right)
                > (b.expiredCount, b.status?.number ?? 0, b.count, left)
        }
        return chosen.prefix(countMax).sorted().map { lags[$0] }
    }

    private mutating func tell(_ sum: LagSum, retention: Double?) {
        let labels = MetricsPage.Labels(labels(sum.group, sum.topic))
        metrics.add("kafka_consumergroup_group_topic_sum_lag", labels, Double(sum.count))
        if let status = sum.status { metrics.add("fieldpost_lag_worst_status", labels, Double(status.number)) }
        if let goes = sum.goesPerSecond {
            metrics.add("fieldpost_group_messages_per_second", labels, Self.rounded(goes))
        }
        if let seconds = sum.closesSeconds {
            metrics.add("fieldpost_lag_closes_seconds", labels, Self.rounded(seconds))
        }
        if let retention, let seconds = sum.headroomSeconds(retention: retention) {
            metrics.add("fieldpost_lag_headroom_seconds", labels, Self.rounded(seconds))
        }
    }

    /// Who is in groups, and how often that changed.
    package mutating func tell(
        _ groups: [LagLook.Group], rebalances: [(group: String, count: Int)]
    ) {
        for group in groups {
            guard let count = group.memberCount else { continue }
            metrics.add("fieldpost_group_members", labels(group.name), Double(count))
        }
        for (group, count) in rebalances {
            metrics.add("fieldpost_group_rebalances_total", labels(group), Double(count))
        }
    }

    /// Digits that nobody sees are bytes all the same.
    private static func rounded(_ value: Double) -> Double { (value * 1_000).rounded() / 1_000 }

    /// A series' labels.
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
