import Kafka
import TestSupport
import Testing

@Suite(.ownThreads) struct FaultTests {
    @Test func consumerResumesAfterTransientErrors() async throws {
        try await withMockCluster(topics: ["t": 1]) { cluster in
            try produce(["0"], at: cluster.address)
            cluster.spoil(.joinGroup, with: [15, 16])  // COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR
            cluster.spoil(.fetch, with: [6, -1])  // NOT_LEADER_FOR_PARTITION, UNKNOWN_SERVER_ERROR
            var consumer = try Consumer(brokers: cluster.address, group: "g", topics: ["t"], properties: fastGroup)
            let first = try consumer.receive(1)
            #expect(first.map(\.text) == ["0"])

            cluster.setDown()
            try wait {
                _ = try consumer.nextBatch(countMax: 1, waitMax: .milliseconds(50))
                return !consumer.isConnected && consumer.lastError != nil
            }
            cluster.setUp()
            try produce(["1"], at: cluster.address)
            let second = try consumer.receive(1)
            #expect(second.map(\.text) == ["1"])
            #expect(second.map(\.skippedBefore) == [false])
            try wait {
                _ = try consumer.nextBatch(countMax: 1, waitMax: .milliseconds(50))
                return consumer.isConnected && consumer.lastError == nil
            }
        }
    }

    @Test func fencedStaticMemberThrowsFatalError() async throws {
        try await withMockCluster(topics: ["t": 1]) { cluster in
            var consumer = try Consumer(
                brokers: cluster.address, group: "g", topics: ["t"],
                properties: fastGroup.merging(["group.instance.id": "one"]) { $1 })
            try wait {
                _ = try consumer.nextBatch(countMax: 1, waitMax: .milliseconds(50))
                return !consumer.assignment.isEmpty
            }
            cluster.spoil(.heartbeat, with: [82])  // FENCED_INSTANCE_ID
            let error = #expect(throws: KafkaError.self) {
                _ = try consumer.receive(1)
            }
            #expect(error?.isFatal == true)
            #expect(error?.name == "FENCED_INSTANCE_ID")
        }
    }

    @Test func consumerRestartsAfterBrokerRecoversEmpty() async throws {
        try await withMockCluster(topics: ["t": 1], restarts: true) { cluster in
            try produce((0..<10).map { "old \($0)" }, at: cluster.address)
            var consumer = try Consumer(brokers: cluster.address, group: "g", topics: ["t"], properties: fastGroup)
            let old = try consumer.receive(10)
            consumer.finish(old.dropLast())

            try cluster.restartEmpty()
            try produce((0..<3).map { "new \($0)" }, at: cluster.address)
            let new = try consumer.receive(3)
            // Either the fetch with the lost offset or the heartbeat of an unknown member comes first.
            let wasLost = consumer.takeAssignmentChanges().contains(.lost(TopicPartition(topic: "t", partition: 0)))
            #expect(new.first?.skippedBefore == true || wasLost)
            #expect(new.map(\.text) == ["new 0", "new 1", "new 2"])
            consumer.finish(old)
            consumer.finish(new)
            let finished = consumer.finishedOffsets
            #expect(finished == [TopicPartition(topic: "t", partition: 0): 3])
            try wait {
                _ = try consumer.nextBatch(countMax: 1, waitMax: .milliseconds(50))
                let partition = TopicPartition(topic: "t", partition: 0)
                let committed = try Admin(brokers: cluster.address).committed(group: "g", [partition])
                return committed == [partition: 3]
            }
        }
    }

    @Test func consumerClosesWhileBrokerIsUnavailable() async throws {
        try await withMockCluster(topics: ["t": 1]) { cluster in
            try produce(["0"], at: cluster.address)
            var consumer = try Consumer(brokers: cluster.address, group: "g", topics: ["t"], properties: fastGroup)
            let messages = try consumer.receive(1)
            cluster.setDown()
            try wait {
                _ = try consumer.nextBatch(countMax: 1, waitMax: .milliseconds(50))
                return !consumer.isConnected
            }
            consumer.finish(messages)
            let start = ContinuousClock.now
            consumer.close()
            let took = ContinuousClock.now - start
            #expect(took < .seconds(40))  // librdkafka's own calls to an unavailable broker take 60 s.
        }
    }

    @Test func producerDetectsBrokerThatRecoversEmpty() async throws {
        try await withMockCluster(topics: ["t": 1], restarts: true) { cluster in
            var producer = try Producer(brokers: cluster.address)
            for tag in 0..<10 as Range<UInt64> { try producer.send("t", key: [1], value: [2], tag: tag) }
            producer.expectFlushed()
            let before = producer.deliveries(waitMax: .zero)
            #expect(before.allSatisfy { $0.error == nil })
            #expect(before.map(\.offset) == Array(0..<10))

            // This includes in-flight messages, whose responses would arrive after the restart.
            cluster.setRoundTrip(milliseconds: 60_000)
            for tag in 10..<20 as Range<UInt64> { try producer.send("t", key: [1], value: [2], tag: tag) }
            try cluster.restartEmpty()
            producer.expectFlushed()
            let after = producer.deliveries(waitMax: .zero)
            #expect(after.map(\.tag) == Array(10..<20))
            // The offsets start over: the caller compares them with earlier ones.
            #expect(after.map(\.offset) == Array(0..<10))
            let fatal = producer.fatalError
            #expect(fatal == nil)
        }
    }

    @Test func lostSequenceTerminatesProducer() async throws {
        try await withMockCluster(topics: ["t": 1]) { cluster in
            var producer = try Producer(
                brokers: cluster.address, properties: ["batch.num.messages": "1", "max.in.flight": "1"])
            try producer.send("t", key: [1], value: [2])
            producer.expectFlushed()
            cluster.spoil(.produce, with: [45])  // OUT_OF_ORDER_SEQUENCE_NUMBER
            try producer.send("t", key: [1], value: [2])
            var sentCount = 2
            // Rejected as soon as the client has processed the error.
            while sentCount < 4, (try? producer.send("t", key: [1], value: [2])) != nil { sentCount += 1 }
            producer.expectFlushed()
            let deliveries = producer.deliveries(waitMax: .zero)
            let names = deliveries.map(\.error?.name)
            // One message is rejected, in any order of reports. Messages sent before the client has processed the error
            // are written out of order by the mock cluster; the rest is dropped.
            #expect(names.count == sentCount && names.first == .some(nil))
            #expect(names.filter { $0 == "OUT_OF_ORDER_SEQUENCE_NUMBER" }.count == 1)
            #expect(names.allSatisfy { ["OUT_OF_ORDER_SEQUENCE_NUMBER", "_PURGE_QUEUE", nil].contains($0) })
            let fatal = producer.fatalError
            #expect(fatal?.isFatal == true)
            let error = #expect(throws: KafkaError.self) { try producer.send("t", key: [1], value: [2]) }
            #expect(error == fatal)
        }
    }

    @Test func producerResumesAfterUnknownProducerID() async throws {
        try await withMockCluster(topics: ["t": 1]) { cluster in
            var producer = try Producer(brokers: cluster.address)
            try producer.send("t", key: [1], value: [2])
            producer.expectFlushed()
            cluster.spoil(.produce, with: [59])  // UNKNOWN_PRODUCER_ID
            try producer.send("t", key: [1], value: [2])
            producer.expectFlushed()
            let deliveries = producer.deliveries(waitMax: .zero)
            #expect(deliveries.map(\.offset) == [0, 1])
            let fatal = producer.fatalError
            #expect(fatal == nil)
        }
    }

    @Test func duplicateBatchHasUnknownOffset() async throws {
        try await withMockCluster(topics: ["t": 1]) { cluster in
            try produce(["a", "b", "c"], at: cluster.address)
            var producer = try Producer(brokers: cluster.address)
            try producer.send("t", key: [1], value: [2])
            producer.expectFlushed()
            cluster.spoil(.produce, with: [46])  // DUPLICATE_SEQUENCE_NUMBER
            for _ in 0..<3 { try producer.send("t", key: [1], value: [2]) }
            producer.expectFlushed()
            let deliveries = producer.deliveries(waitMax: .zero)
            #expect(deliveries.map(\.offset) == [3, nil, nil, nil])
            #expect(deliveries.allSatisfy { $0.error == nil })
        }
    }
}
