import Kafka
import TestSupport
import Testing

@Suite struct FaultTests {
    @Test func aConsumerGoesOnAfterErrorsThatPass() async throws {
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

    @Test func aMemberWhoseIdentityWasTakenIsAFatalError() async throws {
        try await withMockCluster(topics: ["t": 1]) { cluster in
            var consumer = try Consumer(
                brokers: cluster.address, group: "g", topics: ["t"],
                properties: fastGroup.merging(["group.instance.id": "one"]) { $1 })
            cluster.spoil(.joinGroup, with: [82])  // FENCED_INSTANCE_ID
            let error = #expect(throws: KafkaError.self) {
                _ = try consumer.receive(1)
            }
            #expect(error?.isFatal == true)
            #expect(error?.name == "FENCED_INSTANCE_ID")
        }
    }

    @Test func aConsumerBeginsAgainWhenTheBrokerComesBackEmpty() async throws {
        try await withMockCluster(topics: ["t": 1]) { cluster in
            try produce((0..<10).map { "old \($0)" }, at: cluster.address)
            var consumer = try Consumer(brokers: cluster.address, group: "g", topics: ["t"], properties: fastGroup)
            let old = try consumer.receive(10)
            consumer.finish(old.dropLast())

            try cluster.restartEmpty()
            try produce((0..<3).map { "new \($0)" }, at: cluster.address)
            let new = try consumer.receive(3)
            print("restart", new.map(\.skippedBefore), consumer.takeAssignmentChanges(), consumer.takeLogs())
            #expect(new.map(\.text) == ["new 0", "new 1", "new 2"])
            consumer.finish(old)
            consumer.finish(new)
            let positions = consumer.positions
            #expect(positions.first?.finishedBelow == 3)
            try wait {
                _ = try consumer.nextBatch(countMax: 1, waitMax: .milliseconds(50))
                let partition = TopicPartition(topic: "t", partition: 0)
                let committed = try Admin(brokers: cluster.address).committed(group: "g", [partition])
                print(committed)
                return committed == [partition: 3]
            }
        }
    }

    @Test func aProducerWhenTheBrokerComesBackEmpty() async throws {
        try await withMockCluster(topics: ["t": 1]) { cluster in
            var producer = try Producer(brokers: cluster.address)
            for tag in 0..<10 as Range<UInt64> { try producer.send("t", key: [1], value: [2], tag: tag) }
            producer.expectFlushed()
            print("before", producer.deliveries(waitMax: .zero).count)
            try cluster.restartEmpty()
            for tag in 10..<20 as Range<UInt64> {
                do { try producer.send("t", key: [1], value: [2], tag: tag) } catch { print("send", error) }
            }
            print("flushed", producer.flush(waitMax: .seconds(10)))
            for d in producer.deliveries(waitMax: .zero) { print(d.tag, d.partition, d.offset as Any, d.error as Any) }
            print("fatal", producer.fatalError as Any, "last", producer.lastError as Any)
            for line in producer.takeLogs() { print(line.facility, line.message) }
        }
    }
}
