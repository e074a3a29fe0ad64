import Kafka
import NIOCore
import Telemetry
import Testing

@testable import LagMonitoring

struct LagPageTests {
    /// Two groups of two partitions; ten snapshots, ten seconds apart. The first group is stalled where it is behind.
    private static func history() -> LagHistory {
        var history = LagHistory()
        for number in 0..<Int64(10) {
            func offsets(_ first: Int64, _ second: Int64) -> [TopicPartition: Int64?] {
                [TopicPartition(topic: "t", partition: 0): first, TopicPartition(topic: "t", partition: 1): second]
            }
            func group(_ name: String, _ offsets: [TopicPartition: Int64?], _ members: Set<String>) -> LagSnapshot.Group
            {
                LagSnapshot.Group(
                    name: name, isKnown: true, offsets: offsets, memberCount: members.count, memberIDs: members)
            }
            history.take(
                LagSnapshot(
                    milliseconds: number * 10_000,
                    available: [
                        TopicPartition(topic: "t", partition: 0): 0..<(1_000 + number * 100),
                        TopicPartition(topic: "t", partition: 1): 0..<(10 + number * 10),
                    ],
                    groups: [
                        group("g", offsets(50, 10 + number * 10), ["a"]),
                        group("h", offsets(number * 200, 10 + number * 10), number < 5 ? ["a"] : ["a", "b"]),
                    ]))
        }
        return history
    }

    private static func text(_ history: LagHistory, partitionCountMax: Int) -> [String] {
        var page = LagPage(cluster: "c", partitionCountMax: partitionCountMax)
        page.export(history.lags, retentions: ["t": 604_800])
        page.export([], rebalances: history.rebalanceCounts)
        return page.metrics.parts.map { String(buffer: $0) }.joined().split(separator: "\n").map(String.init)
    }

    @Test func groupsAreExportedByTopicAndPartition() {
        var history = Self.history()
        history.learn([TopicPartition(topic: "t", partition: 0): 40_000], of: "g")
        let lines = Self.text(history, partitionCountMax: 4)
        let expected = [
            "fieldpost_monitor_partitions_exported 1",
            #"kafka_consumergroup_group_lag{cluster_name="c",group="g",partition="0",topic="t"} 1850"#,
            #"kafka_consumergroup_group_lag{cluster_name="c",group="g",partition="1",topic="t"} 0"#,
            #"kafka_consumergroup_group_offset{cluster_name="c",group="g",partition="1",topic="t"} 100"#,
            #"kafka_consumergroup_group_lag_seconds{cluster_name="c",group="g",partition="0",topic="t"} 50"#,
            #"fieldpost_lag_seconds_exact{cluster_name="c",group="g",partition="0",topic="t"} 1"#,
            #"fieldpost_lag_status{cluster_name="c",group="g",partition="0",topic="t"} 2"#,
            #"fieldpost_lag_worst_status{cluster_name="c",group="g",topic="t"} 2"#,
            #"kafka_consumergroup_group_topic_sum_lag{cluster_name="c",group="g",topic="t"} 1850"#,
            #"kafka_consumergroup_group_max_lag{cluster_name="c",group="g"} 1850"#,
            #"kafka_consumergroup_group_max_lag_seconds{cluster_name="c",group="g"} 50"#,
            #"kafka_partition_latest_offset{cluster_name="c",partition="0",topic="t"} 1900"#,
            #"fieldpost_topic_messages_per_second{cluster_name="c",topic="t"} 11"#,
            #"fieldpost_group_messages_per_second{cluster_name="c",group="g",topic="t"} 1"#,
            #"fieldpost_retention_headroom_seconds{cluster_name="c",group="g",topic="t"} 604750"#,
            #"fieldpost_topic_retention_seconds{cluster_name="c",topic="t"} 604800"#,
            // "h" consumes 20 messages per second, and 10 are written: the 100 that are left last for 10 s.
            #"fieldpost_lag_drain_seconds{cluster_name="c",group="h",topic="t"} 10"#,
            #"fieldpost_group_rebalances_total{cluster_name="c",group="h"} 1"#,
            #"fieldpost_group_rebalances_total{cluster_name="c",group="g"} 0"#,
            "# TYPE fieldpost_group_rebalances_total counter",
        ]
        for line in expected { #expect(lines.contains(line), "\(line)") }
        // Without an end while lag grows; a healthy partition is omitted.
        #expect(!lines.contains { $0.hasPrefix("fieldpost_lag_drain_seconds{cluster_name=\"c\",group=\"g\"") })
        #expect(lines.filter { $0.hasPrefix("fieldpost_lag_status{") }.count == 1)
        #expect(!lines.contains { $0.hasPrefix("fieldpost_lag_expired_messages") })
        #expect(lines.filter { $0.hasPrefix("kafka_partition_latest_offset{") }.count == 2)
    }

    @Test func onlyUnhealthyPartitionsAreExportedBeyondTheLimit() {
        let lines = Self.text(Self.history(), partitionCountMax: 3)
        #expect(lines.contains("fieldpost_monitor_partitions_exported 0"))
        let exported = lines.filter { $0.hasPrefix("kafka_consumergroup_group_lag{") }
        let expected = #"kafka_consumergroup_group_lag{cluster_name="c",group="g",partition="0",topic="t"} 1850"#
        #expect(exported == [expected])
        // Metrics by topic are complete.
        #expect(lines.filter { $0.hasPrefix("kafka_consumergroup_group_topic_sum_lag{") }.count == 2)
        #expect(lines.filter { $0.hasPrefix("fieldpost_lag_worst_status{") }.count == 2)
        #expect(
            !Self.text(Self.history(), partitionCountMax: 0).contains { $0.hasPrefix("kafka_consumergroup_group_lag{") }
        )
    }

    @Test func worstPartitionsAreExportedFirst() {
        func lag(_ partition: Int32, expired: Int64, _ status: LagStatus) -> PartitionLag {
            let partition = TopicPartition(topic: "t", partition: partition)
            return PartitionLag(
                group: "g", partition: partition,
                beginning: Beginning(partition: partition, committed: 10 - expired, available: 10..<20),
                hasConsumer: true, status: status)
        }
        let lags = [
            lag(0, expired: 0, .warn), lag(1, expired: 0, .ok), lag(2, expired: 3, .ok), lag(3, expired: 0, .stop),
            lag(4, expired: 0, .stop),
        ]
        #expect(LagPage.worst(lags, 9).map(\.partition.partition) == [0, 2, 3, 4])
        #expect(LagPage.worst(lags, 2).map(\.partition.partition) == [2, 3])
    }
}
