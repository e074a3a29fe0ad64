import Kafka
import TestSupport
import Testing

/// Errors that need manual action are reported once, with advice.
@Suite(.ownThreads) struct BrokerRejectionTests {
    private static let login = [
        "security.protocol": "sasl_plaintext", "sasl.mechanism": "PLAIN", "sasl.username": "fieldpost",
        "sasl.password": "wrong", "reconnect.backoff.max.ms": "100",
    ]

    @Test func wrongPasswordIsReportedWithAdvice() async throws {
        try await withOwnThread {
            let broker = try RefusingBroker()
            let admin = try Admin(brokers: broker.address, properties: Self.login, waitMax: .seconds(2))
            let error = #expect(throws: KafkaError.self) { try admin.metadata() }
            #expect(error?.name == "_AUTHENTICATION")
            #expect(error?.description.contains("kafka.sasl.password") == true)

            var consumer = try Consumer(brokers: broker.address, group: "g", topics: ["t"], properties: Self.login)
            try wait {
                _ = try consumer.nextBatch(countMax: 1, waitMax: .milliseconds(50))
                return consumer.connectionProblem?.contains("kafka.sasl.password") == true
            }
            var rejections = consumer.takeRejections()
            // The consumer keeps retrying.
            for _ in 0..<20 {
                _ = try consumer.nextBatch(countMax: 1, waitMax: .milliseconds(50))
                rejections += consumer.takeRejections()
            }
            #expect(rejections.map(\.name) == ["_AUTHENTICATION"])
        }
    }

    /// A client that is re-created for each attempt, like a worker's, gets the same text, so that it is logged once.
    @Test func wrongPasswordHasConstantText() async throws {
        try await withOwnThread {
            let broker = try RefusingBroker()
            var texts: Set<String> = []
            for milliseconds in [300, 500, 800] {
                let admin = try Admin(
                    brokers: broker.address, properties: Self.login, waitMax: .milliseconds(milliseconds))
                let error = #expect(throws: KafkaError.self) { try admin.metadata() }
                texts.insert(error?.description ?? "")
            }
            #expect(texts.count == 1, "\(texts)")
        }
    }

    /// UNKNOWN_TOPIC_OR_PART, TOPIC_AUTHORIZATION_FAILED
    @Test(arguments: [3, 29] as [Int32]) func rejectedTopicIsReportedUntilGranted(code: Int32) async throws {
        try await withMockCluster(topics: ["t": 1]) { cluster in
            cluster.spoil(topic: "t", with: code)
            var consumer = try Consumer(
                brokers: cluster.address, group: "g", topics: ["t"],
                properties: fastGroup.merging(["topic.metadata.refresh.interval.ms": "200"]) { $1 })
            try wait {
                _ = try consumer.nextBatch(countMax: 1, waitMax: .milliseconds(50))
                return consumer.connectionProblem != nil
            }
            let rejections = consumer.takeRejections()
            #expect(rejections.map(\.code) == [code])
            cluster.spoil(topic: "t", with: 0)
            try wait {
                _ = try consumer.nextBatch(countMax: 1, waitMax: .milliseconds(50))
                return consumer.connectionProblem == nil && !consumer.assignment.isEmpty
            }
        }
    }

    @Test func rejectedGroupIsReportedUntilGranted() async throws {
        try await withMockCluster(topics: ["t": 1]) { cluster in
            cluster.spoil(.joinGroup, with: [30])  // GROUP_AUTHORIZATION_FAILED
            var consumer = try Consumer(brokers: cluster.address, group: "g", topics: ["t"], properties: fastGroup)
            var rejections: [KafkaError] = []
            try wait {
                _ = try consumer.nextBatch(countMax: 1, waitMax: .milliseconds(50))
                rejections += consumer.takeRejections()
                return !consumer.assignment.isEmpty
            }
            #expect(rejections.map(\.code) == [30])
            #expect(consumer.connectionProblem == nil)
        }
    }
}
