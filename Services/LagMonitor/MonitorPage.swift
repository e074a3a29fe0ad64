import Essentials
import Kafka
import Lag
import Runtime

/// What is told in Prometheus' text, under the names that users of kafka-lag-exporter and KMinion know; what these do
/// not tell begins with `fieldpost_`.
struct MonitorPage {
    private(set) var metrics = MetricsPage()
    private let cluster: String

    init(cluster: String) { self.cluster = cluster }

    /// - Parameter members: The groups, with how many members they have.
    mutating func tell(_ lags: [PartitionLag], members: [LagLook.Group]) {
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

    /// What workers could do now: messages that are there, and parked keys that are due.
    mutating func tellBacklog(_ lags: [PartitionLag], _ parked: [MonitorStore.Parked]) {
        var due: [String: [String: Int64]] = [:]
        for parked in parked { due[parked.group, default: [:]][parked.topic] = parked.dueCount }
        for (group, lags) in Dictionary(grouping: lags, by: \.group).sorted(by: { $0.key < $1.key }) {
            for (topic, lags) in Self.byTopic(lags) {
                let count = lags.map(\.count).reduce(0, +) + (due[group]?[topic] ?? 0)
                metrics.add("fieldpost_workable_backlog", labels(group, topic), Double(count))
            }
        }
    }

    mutating func tell(_ parked: [MonitorStore.Parked]) {
        for parked in parked {
            let states = [
                ("due", parked.dueCount), ("waiting", parked.waitingCount), ("circuit", parked.circuitCount),
                ("dead", parked.deadCount),
            ]
            for (state, count) in states {
                metrics.add(
                    "fieldpost_parked_keys", labels(parked.group, parked.topic) + [("state", state)], Double(count))
            }
        }
    }

    mutating func tell(_ behind: [MonitorStore.Behind]) {
        for environment in behind {
            let place = [("environment", environment.environment)]
            metrics.add("fieldpost_relay_behind_positions", place, Double(environment.positionCount))
            if let seconds = environment.seconds { metrics.add("fieldpost_relay_behind_seconds", place, seconds) }
        }
    }

    mutating func tell(round: Duration, problemCount: Int) {
        metrics.add("fieldpost_monitor_round_seconds", [], round.inSeconds)
        metrics.add("fieldpost_monitor_problems", [], Double(problemCount))
    }

    private func labels(
        _ group: String? = nil, _ topic: String? = nil, _ partition: Int32? = nil
    ) -> [(String, String)] {
        var labels = [("cluster_name", cluster)]
        if let group { labels.append(("group", group)) }
        if let topic { labels.append(("topic", topic)) }
        if let partition { labels.append(("partition", String(partition))) }
        return labels
    }

    private static func byTopic(_ lags: [PartitionLag]) -> [(String, [PartitionLag])] {
        Dictionary(grouping: lags, by: \.partition.topic).sorted { $0.key < $1.key }
    }
}
