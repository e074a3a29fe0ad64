import Kafka
import TestSupport
import Testing

@Suite(.ownThreads) struct AdminTests {
    @Test func adminReturnsTopicsAndWatermarks() async throws {
        try await withMockCluster(topics: ["t": 1, "u": 3]) { cluster in
            try produce(["a", "b"], at: cluster.address)
            let admin = try Admin(brokers: cluster.address)
            let metadata = try admin.metadata()
            #expect(metadata.topics == ["t": 1, "u": 3])
            #expect(metadata.brokers.map { "\($0.host):\($0.port)" } == [cluster.address])
            let watermarks = try admin.watermarks(TopicPartition(topic: "t", partition: 0))
            #expect(watermarks == 0..<2)
            #expect(throws: KafkaError.self) { try admin.watermarks(TopicPartition(topic: "t", partition: 9)) }
        }
    }

    @Test func unsupportedRequestThrowsNotSupported() async throws {
        try await withMockCluster(topics: ["t": 1]) { cluster in
            let admin = try Admin(brokers: cluster.address)
            let creation = #expect(throws: KafkaError.self) {
                _ = try admin.createTopics([NewTopic(name: "n", partitions: 1, configuration: ["retention.ms": "1"])])
            }
            #expect(creation?.isNotSupported == true)
            #expect(creation?.message.contains("not supported") == true)
            let groups = #expect(throws: KafkaError.self) { _ = try admin.groups() }
            #expect(groups?.isNotSupported == true)
        }
    }

    @Test func unreachableBrokerThrowsTimeout() throws {
        let admin = try Admin(brokers: "127.0.0.1:1", waitMax: .milliseconds(200))
        let error = #expect(throws: KafkaError.self) { _ = try admin.metadata() }
        #expect(error?.isRetriable == true)
    }
}
