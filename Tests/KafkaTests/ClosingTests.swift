import CKafka
import TestSupport
import Testing

@testable import Kafka

@Suite(.ownThreads) struct ClosingTests {
    /// A closing consumer may get a rebalance after it has left its group, when librdkafka has no rebalance protocol.
    /// Here the client never had a group.
    @Test func rebalanceAfterLeavingRevokesNothing() throws {
        let client = try unsafe #require(rd_kafka_new(RD_KAFKA_PRODUCER, nil, nil, 0))
        defer { unsafe rd_kafka_destroy(client) }
        let list = try unsafe #require(rd_kafka_topic_partition_list_new(1))
        defer { unsafe rd_kafka_topic_partition_list_destroy(list) }
        for code in [RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS, RD_KAFKA_RESP_ERR__REVOKE_PARTITIONS] {
            let context = ConsumerContext()
            let partition = TopicPartition(topic: "t", partition: 0)
            context.restart(PartitionTracker(partition))
            unsafe context.rebalance(client, code, list)
            #expect(context.trackers.isEmpty && context.changes == [.lost(partition)])
        }
    }
}
