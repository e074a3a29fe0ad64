import TestSupport
import Testing

@testable import Kafka

@Suite(.ownThreads) struct PausingTests {
    @Test func pausedPartitionDeliversNothingAndLosesNothing() async throws {
        try await withMockCluster(topics: ["t": 1]) { cluster in
            var consumer = try Consumer(brokers: cluster.address, group: "g", topics: ["t"], properties: fastGroup)
            // Paused before the assignment: the partition's first messages are delivered, and no more.
            try consumer.pauseAll()
            try produce(["0"], at: cluster.address)
            let first = try consumer.receive(1)
            #expect(first.map(\.text) == ["0"])
            try consumer.waitForSilence(batchCount: 10)
            try produce(["1", "2", "3"], at: cluster.address)
            try consumer.expectSilence(batchCount: 10)
            try consumer.resumeAll()
            let second = try consumer.receive(1, batchMax: 1)
            #expect(second.map(\.text) == ["1"])

            // Messages being fetched may still be delivered, and are delivered again.
            try consumer.pauseAll()
            try consumer.waitForSilence(batchCount: 10)
            try produce(["4"], at: cluster.address)
            try consumer.expectSilence(batchCount: 10)
            try consumer.resumeAll()
            let rest = try consumer.receive(3)
            #expect(rest.map(\.text) == ["2", "3", "4"])
            #expect(rest.allSatisfy { !$0.skippedBefore })
        }
    }

    /// librdkafka loses commands that coincide with its own start of a partition: the partition would never be read.
    @Test func pauseAndResumeWaitForFirstDelivery() async throws {
        try await withMockCluster(topics: ["t": 1]) { cluster in
            try produce(["0", "1", "2", "3", "4"], at: cluster.address)
            let properties = fastGroup.merging(["debug": "topic"]) { $1 }
            var consumer = try Consumer(brokers: cluster.address, group: "g", topics: ["t"], properties: properties)
            var logLines: [String] = []
            var messages: [Message] = []
            try wait {
                // Repeatedly, also between the assignment and the first message.
                if messages.isEmpty { try consumer.pauseAll() }
                messages += try consumer.nextBatch(countMax: 1, waitMax: .milliseconds(50))
                logLines += consumer.takeLogs().map(\.message)
                if !messages.isEmpty { try consumer.resumeAll() }
                return messages.count == 5
            }
            let start = try #require(logLines.firstIndex { $0.contains("t [0] received op FETCH_START") })
            let orders = logLines.indices.filter {
                logLines[$0].contains(": Application ") && !logLines[$0].contains(" 0 partition")
            }
            #expect(orders.count == 2 && orders.allSatisfy { $0 > start }, "\(logLines)")
            #expect(messages.map(\.offset) == Array(0..<5))
        }
    }

    /// In one of three such runs partitions were lost while librdkafka was also called for starting ones.
    @Test(arguments: 0..<4) func pausesDuringStartLoseNoPartition(_ run: Int) async throws {
        try await withMockCluster(topics: ["t": 400]) { cluster in
            var producer = try Producer(brokers: cluster.address)
            for number in 0..<8_000 {
                try producer.send("t", key: Array("\(number)".utf8), value: [1], tag: UInt64(number))
            }
            producer.expectFlushed()
            let written = Set(producer.deliveries(waitMax: .zero).map(\.topicPartition.partition))
            var consumer = try Consumer(brokers: cluster.address, group: "g", topics: ["t"], properties: fastGroup)
            var missing = written
            try wait {
                try consumer.pauseAll()
                try consumer.resumeAll()
                missing.subtract(try consumer.nextBatch(countMax: 500, waitMax: .milliseconds(50)).map(\.partition))
                return missing.isEmpty
            }
        }
    }
}
