import Essentials
import Kafka
package import Runtime

/// What is told in Prometheus' text, under the names that users of kafka-lag-exporter and KMinion know; what these do
/// not tell begins with `fieldpost_`.
package struct LagPage {
    package var metrics = MetricsPage()
    private let cluster: String

    package init(cluster: String) { self.cluster = cluster }

    /// - Parameter members: The groups, with how many members they have.
    package mutating func tell(_ lags: [PartitionLag], members: [LagLook.Group]) {
        var edges: Set<TopicPartition> = []
        for lag in lags {
            let place = labels(lag.group, lag.partition.topic, lag.partition.partition)
            metrics.add("kafka_consumergroup_group_lag", place, Double(lag.count))
            if lag.isFollowed { metrics.add("fieldpost_lag_expired_messages", place, Double(lag.expiredCount)) }
            if let status = lag.status { metrics.add("fieldpost_lag_status", place, Double(status.number)) }
            if let committed = lag.beginning.committed {
                metrics.add("kafka_consumergroup_group_offset", place, Double(committed))
            }
            // Without messages nothing waits; of messages whose age is not known nothing is said.
            if lag.count == 0 || lag.age != nil {
                metrics.add("kafka_consumergroup_group_lag_seconds", place, lag.age?.seconds ?? 0)
                metrics.add("fieldpost_lag_seconds_are_exact", place, lag.isAgeExact ? 1 : 0)
            }
            if edges.insert(lag.partition).inserted {
                let place = labels(nil, lag.partition.topic, lag.partition.partition)
                metrics.add("kafka_partition_earliest_offset", place, Double(lag.beginning.first))
                metrics.add("kafka_partition_latest_offset", place, Double(lag.beginning.end))
            }
        }
        for (group, lags) in Dictionary(grouping: lags, by: \.group).sorted(by: { $0.key < $1.key }) {
            tell(group, lags)
        }
        for group in members {
            guard let count = group.memberCount else { continue }
            metrics.add("fieldpost_group_members", labels(group.name), Double(count))
        }
    }

    private mutating func tell(_ group: String, _ lags: [PartitionLag]) {
        metrics.add("kafka_consumergroup_group_sum_lag", labels(group), Double(lags.map(\.count).reduce(0, +)))
        metrics.add("kafka_consumergroup_group_max_lag", labels(group), Double(lags.map(\.count).max() ?? 0))
        let oldest = lags.filter(\.isFollowed).compactMap(\.age?.seconds).max() ?? 0
        metrics.add("kafka_consumergroup_group_max_lag_seconds", labels(group), oldest)
        for (topic, lags) in Self.byTopic(lags) {
            metrics.add(
                "kafka_consumergroup_group_topic_sum_lag", labels(group, topic),
                Double(lags.map(\.count).reduce(0, +)))
        }
    }

    /// A series' labels.
    package func labels(
        _ group: String? = nil, _ topic: String? = nil, _ partition: Int32? = nil
    ) -> [(String, String)] {
        var labels = [("cluster_name", cluster)]
        if let group { labels.append(("group", group)) }
        if let topic { labels.append(("topic", topic)) }
        if let partition { labels.append(("partition", String(partition))) }
        return labels
    }

    /// Lags of one group, by topic.
    package static func byTopic(_ lags: [PartitionLag]) -> [(String, [PartitionLag])] {
        Dictionary(grouping: lags, by: \.partition.topic).sorted { $0.key < $1.key }
    }
}
