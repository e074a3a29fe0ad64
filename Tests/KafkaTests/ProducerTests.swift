import Kafka
import TestSupport
import Testing

@Suite(.ownThreads) struct ProducerTests {
    @Test func deliveryReportsContainOffsets() async throws {
        try await withMockCluster(topics: ["t": 1]) { cluster in
            let deliveries = try produce(["a", "b", "c"], at: cluster.address)
            #expect(deliveries.map(\.tag) == [0, 1, 2])
            #expect(deliveries.map(\.offset) == [0, 1, 2])
            let partition = TopicPartition(topic: "t", partition: 0)
            #expect(deliveries.allSatisfy { $0.topicPartition == partition && $0.error == nil })
        }
    }

    @Test func deliveriesWaitsForReport() async throws {
        try await withMockCluster(topics: ["t": 1]) { cluster in
            var producer = try Producer(brokers: cluster.address)
            try producer.send("t", key: [1], value: [2], tag: 7)
            var deliveries: [Delivery] = []
            try wait {
                deliveries += producer.deliveries(waitMax: .milliseconds(500))
                return !deliveries.isEmpty
            }
            #expect(deliveries.map(\.tag) == [7])
            let more = producer.deliveries(waitMax: .zero)
            #expect(more.isEmpty)
        }
    }

    @Test func fullQueueAppliesBackpressureAndLosesNoReport() async throws {
        try await withMockCluster(topics: ["t": 1]) { cluster in
            // Statistics would be counted with the messages.
            let properties = ["queue.buffering.max.messages": "10", "statistics.interval.ms": "0"]
            var producer = try Producer(brokers: cluster.address, properties: properties)
            for tag in 0..<500 as Range<UInt64> {
                try producer.send("t", key: [1], value: [2], tag: tag)
                // A waiting report is counted in addition to its messages, of which there is at least one.
                let queuedCount = producer.queuedCount
                #expect(queuedCount <= 20)
            }
            producer.expectFlushed()
            let deliveries = producer.deliveries(waitMax: .zero)
            #expect(deliveries.map(\.tag) == Array(0..<500))
        }
    }

    @Test func permanentlyFullQueueThrowsQueueFull() throws {
        var producer = try Producer(
            brokers: "127.0.0.1:1", properties: ["queue.buffering.max.messages": "2"])
        for _ in 0..<2 { try producer.send("t", key: [1], value: [2]) }
        let error = #expect(throws: KafkaError.self) {
            try producer.send("t", key: [1], value: [2], waitMax: .milliseconds(20))
        }
        #expect(error?.name == "_QUEUE_FULL")
        #expect(error?.isRetriable == true)
        try wait {
            _ = producer.deliveries(waitMax: .milliseconds(50))
            return producer.lastError != nil
        }
        let isConnected = producer.isConnected
        #expect(!isConnected)
        producer.purge()
        producer.expectFlushed()
        let deliveries = producer.deliveries(waitMax: .zero)
        #expect(deliveries.map(\.error?.name) == ["_PURGE_QUEUE", "_PURGE_QUEUE"])
        #expect(deliveries.allSatisfy { $0.offset == nil })
        let logs = producer.takeLogs()
        #expect(!logs.isEmpty)
    }

    @Test func retriableErrorIsRetriedOnce() async throws {
        try await withMockCluster(topics: ["t": 1]) { cluster in
            // NOT_ENOUGH_REPLICAS, NOT_LEADER_FOR_PARTITION
            cluster.spoil(.produce, with: [19, 6])
            let deliveries = try produce(["a", "b"], at: cluster.address)
            #expect(deliveries.map(\.offset) == [0, 1])
            #expect(deliveries.allSatisfy { $0.error == nil })
        }
    }

    @Test func rejectedMessageIsReported() async throws {
        try await withMockCluster(topics: ["t": 1]) { cluster in
            cluster.spoil(.produce, with: [29])  // TOPIC_AUTHORIZATION_FAILED
            let deliveries = try produce(["a"], at: cluster.address)
            #expect(deliveries.map(\.error?.name) == ["TOPIC_AUTHORIZATION_FAILED"])
            #expect(deliveries.first?.offset == nil)
        }
    }

    @Test func oversizedMessageIsRejectedImmediately() throws {
        var producer = try Producer(brokers: "127.0.0.1:1", properties: ["message.max.bytes": "1000"])
        let error = #expect(throws: KafkaError.self) {
            try producer.send("t", key: [1], value: [UInt8](repeating: 0, count: 2000))
        }
        #expect(error?.name == "MSG_SIZE_TOO_LARGE")
        producer.expectFlushed()
        let deliveries = producer.deliveries(waitMax: .zero)
        #expect(deliveries.isEmpty)
    }

    @Test func unsupportedPropertyIsNamedInError() throws {
        let error = #expect(throws: KafkaError.self) {
            _ = try Producer(brokers: "127.0.0.1:1", properties: ["no.such.thing": "1"])
        }
        #expect(error?.message.contains("no.such.thing") == true)
    }
}
