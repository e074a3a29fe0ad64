import TestSupport
import Testing

@testable import Kafka

@Suite(.ownThreads) struct PausingTests {
    @Test func aPausedPartitionIsSilentAndLosesNothing() async throws {
        try await withMockCluster(topics: ["t": 1]) { cluster in
            var consumer = try Consumer(brokers: cluster.address, group: "g", topics: ["t"], properties: fastGroup)
            // Paused before anything is assigned: the partition's first messages come, and no more.
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

            // What is being fetched just then may still come, and comes again.
            let partition = TopicPartition(topic: "t", partition: 0)
            try consumer.pause(partition)
            try consumer.waitForSilence(batchCount: 10)
            try produce(["4"], at: cluster.address)
            try consumer.expectSilence(batchCount: 10)
            try consumer.pauseAll()
            try consumer.resume(partition)
            try consumer.expectSilence(batchCount: 4)
            try consumer.resumeAll()
            let rest = try consumer.receive(3)
            #expect(rest.map(\.text) == ["2", "3", "4"])
            #expect(rest.allSatisfy { !$0.skippedBefore })
        }
    }

    /// librdkafka drops what crosses with its own start of a partition: the partition would never be read.
    @Test func onlyAPartitionThatHasDeliveredIsPausedOrResumed() async throws {
        try await withMockCluster(topics: ["t": 1]) { cluster in
            try produce(["0", "1", "2", "3", "4"], at: cluster.address)
            let properties = fastGroup.merging(["debug": "topic"]) { $1 }
            var consumer = try Consumer(brokers: cluster.address, group: "g", topics: ["t"], properties: properties)
            var told: [String] = []
            var messages: [Message] = []
            try wait {
                // Again and again, also between the assignment and the first message.
                if messages.isEmpty { try consumer.pauseAll() }
                messages += try consumer.nextBatch(countMax: 1, waitMax: .milliseconds(50))
                told += consumer.takeLogs().map(\.message)
                if !messages.isEmpty { try consumer.resumeAll() }
                return messages.count == 5
            }
            let start = try #require(told.firstIndex { $0.contains("t [0] received op FETCH_START") })
            let orders = told.indices.filter {
                told[$0].contains(": Application ") && !told[$0].contains(" 0 partition")
            }
            #expect(orders.count == 2 && orders.allSatisfy { $0 > start }, "\(told)")
            #expect(messages.map(\.offset) == Array(0..<5))
        }
    }

    /// One of three such runs lost partitions while librdkafka was told of those, too, that were just starting.
    @Test(arguments: 0..<4) func pausesWhilePartitionsStartLoseNone(_ run: Int) async throws {
        try await withMockCluster(topics: ["t": 400]) { cluster in
            var producer = try Producer(brokers: cluster.address)
            for number in 0..<8_000 {
                try producer.send("t", key: Array("\(number)".utf8), value: [1], tag: UInt64(number))
            }
            producer.expectFlushed()
            let written = Set(producer.deliveries(waitMax: .zero).map(\.place.partition))
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
