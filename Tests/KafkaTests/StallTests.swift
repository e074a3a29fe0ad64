import TestSupport
import Testing

@testable import Kafka

@Suite struct StallWatchTests {
    private let partition = TopicPartition(topic: "t", partition: 0)

    @Test func aPartitionIsSuspectedWhenItDeliveredNothingFromOneLookToTheNext() throws {
        var watch = StallWatch()
        #expect(try look(&watch, at: 3, end: 9) == [:])
        #expect(try look(&watch, at: 3, end: 9) == [:])
        #expect(try look(&watch, at: 3, end: 9) == [partition: 3])
        #expect(try look(&watch, at: 4, end: 9) == [:])
        #expect(try look(&watch, at: 4, end: 9) == [:])
        #expect(try look(&watch, at: 4, end: 9) == [partition: 4])
    }

    @Test func onesThatHaveNothingOrHadNoTurnAreNotSuspected() throws {
        var watch = StallWatch()
        for _ in 0..<4 { #expect(try look(&watch, at: 9, end: 9) == [:]) }
        // What has just come is not late yet.
        #expect(try look(&watch, at: 9, end: 10) == [:])
        #expect(try look(&watch, at: 9, end: 10) == [partition: 9])
        var busy = StallWatch()
        for _ in 0..<4 { #expect(try look(&busy, at: 3, end: 9, ranDry: false) == [:]) }
    }

    @Test func whatOthersCannotReadEitherIsNotSuspectedAgain() throws {
        var watch = StallWatch()
        for _ in 0..<3 { _ = try look(&watch, at: 3, end: 9) }
        watch.cannotBeRead([partition: 3])
        for _ in 0..<4 { #expect(try look(&watch, at: 3, end: 9) == [:]) }
    }

    private func look(
        _ watch: inout StallWatch, at offset: Int64, end: Int64, ranDry: Bool = true
    ) throws -> [TopicPartition: Int64] {
        if ranDry { watch.ranDry() }
        return try watch.look([partition: offset]) { _ in [partition: end] }
    }
}

@Suite(.ownThreads) struct StallTests {
    @Test func aPartitionThatIsNotDeliveredIsFound() async throws {
        try await withMockCluster(topics: ["t": 2]) { cluster in
            try produce(["0", "1", "2"], at: cluster.address)
            var consumer = try Consumer(brokers: cluster.address, group: "g", topics: ["t"], properties: fastGroup)
            let partition = try consumer.receive(3)[0].topicPartition
            try check(&consumer, count: 4)
            try consumer.pauseUnknowingly(partition)
            try produce(["3"], at: cluster.address)
            let error = #expect(throws: KafkaError.self) { try check(&consumer, count: 4) }
            #expect(error?.isFatal == true)
            #expect(error?.description.contains("\(partition) delivers nothing") == true, "\(error as Any)")
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
