import Essentials
import Kafka
import TestSupport
import Testing

@Suite(.ownThreads) struct ConsumerTests {
    @Test func messagesArriveInBatchesAndInOrder() async throws {
        try await withMockCluster(topics: ["t": 1]) { cluster in
            let sent = (0..<1000).map { "\($0)" }
            try produce(sent, at: cluster.address)
            var consumer = try Consumer(brokers: cluster.address, group: "g", topics: ["t"], properties: fastGroup)
            var received: [Message] = []
            try wait {
                let batch = try consumer.nextBatch(countMax: 300, waitMax: .milliseconds(50))
                #expect(batch.count <= 300)
                received += batch
                return received.count >= 1000
            }
            #expect(received.map(\.text) == sent)
            #expect(received.map(\.offset) == Array(0..<1000))
            #expect(received.allSatisfy { !$0.skippedBefore && $0.topic == "t" && $0.partition == 0 })
            #expect(received.allSatisfy { $0.timestamp > 1_600_000_000_000 })
            try wait {
                _ = try consumer.nextBatch(countMax: 1, waitMax: .milliseconds(50))
                return consumer.isConnected
            }
        }
    }

    @Test func nextConsumerStartsAtLowestUnfinishedOffset() async throws {
        try await withMockCluster(topics: ["t": 1]) { cluster in
            try produce((0..<10).map { "\($0)" }, at: cluster.address)
            var first = try Consumer(brokers: cluster.address, group: "g", topics: ["t"], properties: fastGroup)
            let messages = try first.receive(10)
            first.finish([messages[6]])
            first.finish([messages[1], messages[0], messages[3]])
            let partition = TopicPartition(topic: "t", partition: 0)
            let (finished, next) = (first.finishedOffsets, first.nextOffsets)
            #expect(finished == [partition: 2] && next == [partition: 10])
            first.close()

            let admin = try Admin(brokers: cluster.address)
            let committed = try admin.committed(group: "g", [partition])
            #expect(committed == [partition: 2])
            let nothing = try admin.committed(group: "other", [partition])
            #expect(nothing.isEmpty)

            var second = try Consumer(brokers: cluster.address, group: "g", topics: ["t"], properties: fastGroup)
            let rest = try second.receive(8)
            #expect(rest.map(\.offset) == Array(2..<10))
        }
    }

    @Test func messageOutlivesItsConsumer() async throws {
        try await withMockCluster(topics: ["t": 1]) { cluster in
            try produce(["kept"], at: cluster.address)
            var consumer = try Consumer(brokers: cluster.address, group: "g", topics: ["t"], properties: fastGroup)
            let messages = try consumer.receive(1)
            let message = try #require(messages.first)
            consumer.close()
            #expect(message.text == "kept")
        }
    }

    @Test func messageLendsKeyValueAndHeaders() async throws {
        try await withMockCluster(topics: ["t": 1]) { cluster in
            var producer = try Producer(brokers: cluster.address)
            var headers = Headers()
            headers.add("ce_id", "1:2:3")
            headers.add("fieldpost-position", "812")
            headers.add("fieldpost-position", "813")
            headers.add("nothing", "")
            try unsafe producer.send("t", key: Array("a".utf8).span.bytes, value: nil, headers: headers)
            try producer.send("t", key: [], value: [], headers: [("x", [0, 255])])
            producer.expectFlushed()

            var consumer = try Consumer(brokers: cluster.address, group: "g", topics: ["t"], properties: fastGroup)
            let messages = try consumer.receive(2)
            #expect(messages[0].isTombstone)
            #expect(messages[0].value == nil)
            #expect(messages[0].key == Array("a".utf8))
            #expect(messages[0].headerText("ce_id") == "1:2:3")
            #expect(messages[0].headerText("fieldpost-position") == "813")
            #expect(messages[0].header("nothing") == [])
            #expect(messages[0].header("fieldpost") == nil)
            var names: [String] = []
            messages[0].forEachHeader { name, _ in names.append(name.text) }
            #expect(names == ["ce_id", "fieldpost-position", "fieldpost-position", "nothing"])

            #expect(!messages[1].isTombstone)
            #expect(messages[1].value == [])
            #expect(messages[1].header("x") == [0, 255])
            #expect(messages[1].withValue { $0.byteCount } == 0)
        }
    }

    @Test func seekRestartsDeliveryAndIgnoresEarlierMessages() async throws {
        try await withMockCluster(topics: ["t": 1]) { cluster in
            try produce((0..<20).map { "\($0)" }, at: cluster.address)
            let partition = TopicPartition(topic: "t", partition: 0)
            var consumer = try Consumer(brokers: cluster.address, group: "g", topics: ["t"], properties: fastGroup)
            #expect(throws: KafkaError.self) { try consumer.seekToBeginning(partition) }
            let before = try consumer.receive(5, batchMax: 5)
            consumer.finish(before[..<3])
            try consumer.seekToBeginning(partition)
            consumer.recommit(partition, from: 0)
            consumer.finish(before)
            let after = try consumer.receive(20)
            #expect(after.map(\.offset) == Array(0..<20))
            #expect(after.allSatisfy { !$0.skippedBefore })
            let finished = consumer.finishedOffsets
            #expect(finished == [partition: 0])
            try wait {
                _ = try consumer.nextBatch(countMax: 1, waitMax: .milliseconds(50))
                return consumer.takeRecommitted() == [partition]
            }
            consumer.close()
            let committed = try Admin(brokers: cluster.address).committed(group: "g", [partition])
            #expect(committed == [partition: 0])
        }
    }

    /// Versions before 2.1.0 take the limit as microseconds.
    @Test(arguments: [
        (Duration.seconds(5), Int32(0x0200_02ff), Int32(5_000_000)), (.seconds(5), 0x0201_00ff, 5_000),
        (.seconds(5), 0x020d_00ff, 5_000), (.milliseconds(1), 0x0200_02ff, 1_000), (.zero, 0x0200_02ff, 0),
        (.seconds(3_000_000), 0x0200_02ff, 2_000_000_000), (.seconds(3_000_000), 0x0201_00ff, 2_000_000_000),
    ])
    func seekLimitIsInMicrosecondsBeforeVersion21(waitMax: Duration, version: Int32, limit: Int32) {
        #expect(Consumer.seekLimit(waitMax, version: version) == limit)
    }

    @Test func signalInterruptsTheWait() async throws {
        try await withMockCluster(topics: ["t": 1]) { cluster in
            var consumer = try Consumer(
                brokers: cluster.address, group: "g", topics: ["t"],
                properties: fastGroup.merging(["statistics.interval.ms": "0"]) { $1 })
            try wait {
                _ = try consumer.nextBatch(countMax: 1, waitMax: .milliseconds(50))
                return !consumer.assignment.isEmpty
            }
            while consumer.wakeup.drain() {}
            // A signal from before the wait counts too.
            consumer.wakeup.signal()
            let clock = ContinuousClock()
            let early = try clock.measure { _ = try consumer.nextBatch(countMax: 1, waitMax: .seconds(600)) }
            #expect(early < patienceMax)

            let wakeup = consumer.wakeup
            let address = cluster.address
            Task.detached {
                try await Task.sleep(for: .milliseconds(100))
                wakeup.signal()
            }
            let later = try clock.measure { _ = try consumer.nextBatch(countMax: 1, waitMax: .seconds(600)) }
            #expect(later < patienceMax)

            // A message interrupts the wait too.
            try produce(["x"], at: address)
            let start = clock.now
            var messages: [Message] = []
            while messages.isEmpty { messages = try consumer.nextBatch(countMax: 1, waitMax: .seconds(600)) }
            #expect(clock.now - start < patienceMax)
        }
    }

    @Test func unsupportedPropertyIsNamedInError() throws {
        let error = #expect(throws: KafkaError.self) {
            _ = try Consumer(brokers: "127.0.0.1:1", group: "g", topics: ["t"], properties: ["no.such.thing": "1"])
        }
        #expect(error?.message.contains("no.such.thing") == true)
        let value = #expect(throws: KafkaError.self) {
            _ = try Consumer(brokers: "127.0.0.1:1", group: "g", topics: ["t"], properties: ["fetch.min.bytes": "x"])
        }
        #expect(value?.message.contains("fetch.min.bytes") == true)
        let reserved = #expect(throws: KafkaError.self) {
            _ = try Consumer(
                brokers: "127.0.0.1:1", group: "g", topics: ["t"], properties: ["enable.auto.offset.store": "true"])
        }
        #expect(reserved?.message.contains("enable.auto.offset.store") == true)
    }
}
