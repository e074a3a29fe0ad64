import TestSupport
import Testing

@testable import Kafka

@Suite(.ownThreads) struct StallDetectorTests {
    private let partition = TopicPartition(topic: "t", partition: 0)

    @Test func partitionWithoutDeliveryBetweenSamplesIsSuspected() throws {
        var watch = StallDetector()
        #expect(try sample(&watch, at: 3, end: 9) == [:])
        #expect(try sample(&watch, at: 3, end: 9) == [:])
        #expect(try sample(&watch, at: 3, end: 9) == [partition: 3])
        #expect(try sample(&watch, at: 4, end: 9) == [:])
        #expect(try sample(&watch, at: 4, end: 9) == [:])
        #expect(try sample(&watch, at: 4, end: 9) == [partition: 4])
    }

    @Test func emptyOrBusyPartitionIsNotSuspected() throws {
        var watch = StallDetector()
        for _ in 0..<4 { #expect(try sample(&watch, at: 9, end: 9) == [:]) }
        // Messages that have just arrived are not late yet.
        #expect(try sample(&watch, at: 9, end: 10) == [:])
        #expect(try sample(&watch, at: 9, end: 10) == [partition: 9])
        var busy = StallDetector()
        for _ in 0..<4 { #expect(try sample(&busy, at: 3, end: 9, becameIdle: false) == [:]) }
    }

    @Test func unreadableOffsetIsNotSuspectedAgain() throws {
        var watch = StallDetector()
        for _ in 0..<3 { _ = try sample(&watch, at: 3, end: 9) }
        watch.markUnreadable([partition: 3])
        for _ in 0..<4 { #expect(try sample(&watch, at: 3, end: 9) == [:]) }
    }

    private func sample(
        _ watch: inout StallDetector, at offset: Int64, end: Int64, becameIdle: Bool = true
    ) throws -> [TopicPartition: Int64] {
        if becameIdle { watch.becameIdle() }
        return try watch.sample([partition: offset]) { _ in [partition: end] }
    }
}

@Suite(.ownThreads) struct StallTests {
    @Test func stalledPartitionIsDetected() async throws {
        try await withMockCluster(topics: ["t": 2]) { cluster in
            try produce(["0", "1", "2"], at: cluster.address)
            var consumer = try Consumer(brokers: cluster.address, group: "g", topics: ["t"], properties: fastGroup)
            let partition = try consumer.receive(3)[0].topicPartition
            try check(&consumer, count: 4)
            try consumer.pauseUnknowingly()
            try produce(["3"], at: cluster.address)
            let error = #expect(throws: KafkaError.self) { try check(&consumer, count: 4) }
            #expect(error?.isFatal == true)
            #expect(error?.description.contains("\(partition) is stalled") == true, "\(error as Any)")
            #expect(error?.description.contains("offset 3") == true)
            consumer.close()

            var next = try Consumer(brokers: cluster.address, group: "g", topics: ["t"], properties: fastGroup)
            let all = try next.receive(4)
            #expect(all.map(\.text) == ["0", "1", "2", "3"])
            try check(&next, count: 4)
        }
    }

    private func check(_ consumer: inout Consumer, count: Int) throws {
        for _ in 0..<count {
            try consumer.expectSilence(batchCount: 1)
            try consumer.checkDelivery()
        }
    }
}
