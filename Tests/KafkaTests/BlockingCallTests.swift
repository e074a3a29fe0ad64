import Kafka
import TestSupport
import Testing

/// Calls return within their timeouts even if brokers hang. librdkafka's own timeouts would be 60 s and more.
@Suite(.ownThreads) struct BlockingCallTests {
    /// The tolerance for slow machines, beyond the sum of a call's timeouts.
    private static let slack = Duration.seconds(15)
    private static let limit = Duration.seconds(1)
    private static let partitions = (0..<3).map { TopicPartition(topic: "t", partition: $0) }

    enum Fault: CaseIterable {
        case oneFrozen, oneCut, allFrozen, allCut, leaderless
    }

    @Test(arguments: Fault.allCases) func queriesOfManyPartitionsTimeOut(fault: Fault) async throws {
        try await withFault(fault) { brokers, begin in
            let admin = try Admin(brokers: brokers, waitMax: Self.limit)
            _ = try admin.offsets(at: .end, of: Self.partitions)
            let metadata = try admin.metadata()
            begin()
            inTime("metadata") { _ = try admin.metadata() }
            inTime("offsets") { _ = try admin.offsets(at: .first, of: Self.partitions) }
            inTime("watermarks") { _ = try admin.watermarks(Self.partitions[1]) }
            inTime("groups") { _ = try admin.groups() }
            inTime("settings") { _ = try admin.settings(of: ["t"]) }
            inTime("topics") { _ = try admin.createTopics([NewTopic(name: "n", partitions: 1)]) }
            inTime("offsets by leader") {
                let result = admin.offsetsByLeader(at: .end, of: Self.partitions, metadata).offsets
                if fault == .oneFrozen || fault == .oneCut {
                    #expect(Set(result.keys) == [Self.partitions[0], Self.partitions[2]])
                }
            }
        }
    }

    /// Unresponsive leaders do not delay the others, independent of their number.
    @Test func silentLeadersDoNotDelayOthers() async throws {
        let (leaders, silent) = (1...8 as ClosedRange<Int32>, Set(2...6 as ClosedRange<Int32>))
        try await withProxiedCluster(topics: ["t": leaders.count], brokers: Int32(leaders.count)) { cluster, proxies in
            for leader in leaders { cluster.lead("t", leader - 1, by: leader) }
            let partitions = leaders.map { TopicPartition(topic: "t", partition: $0 - 1) }
            let admin = try Admin(brokers: proxies.address, waitMax: Self.limit)
            try wait { (try? admin.offsets(at: .end, of: partitions).count) == partitions.count }
            let metadata = try admin.metadata()
            for broker in silent { proxies.freeze(Int(broker)) }
            inTime("offsets by leader") {
                let result = admin.offsetsByLeader(at: .end, of: partitions, metadata)
                #expect(Set(result.offsets.keys.map { $0.partition + 1 }) == Set(leaders).subtracting(silent))
                #expect(Set(result.silent.keys) == silent && result.refused.isEmpty)
            }
        }
    }

    @Test(arguments: Fault.allCases) func consumerQueriesAndCloseTimeOut(fault: Fault) async throws {
        try await withFault(fault) { brokers, begin in
            try produce(["a", "b", "c"], at: brokers)
            var consumer = try Consumer(brokers: brokers, group: "g", topics: ["t"], properties: fastGroup)
            let messages = try consumer.receive(3)
            try wait {
                _ = try consumer.nextBatch(countMax: 1, waitMax: .milliseconds(50))
                return consumer.assignment.count == 3
            }
            begin()
            inTime("batch") { _ = try consumer.nextBatch(countMax: 10, waitMax: Self.limit) }
            inTime("beginnings") { _ = try consumer.beginnings(of: Self.partitions, waitMax: Self.limit) }
            inTime("firstOffsets") {
                let (result, _) = consumer.firstOffsets(of: Self.partitions, waitMax: Self.limit)
                if fault == .oneCut { #expect(Set(result.keys) == [Self.partitions[0], Self.partitions[2]]) }
            }
            inTime("first") { _ = try consumer.first(of: Self.partitions[1], waitMax: Self.limit) }
            for _ in 0..<3 { inTime("delivery") { try consumer.checkDelivery(waitMax: Self.limit) } }
            inTime("seek") { try consumer.seekToBeginning(messages[0].topicPartition, waitMax: Self.limit) }
            consumer.finish(messages)
            let closing = ContinuousClock.now
            consumer.close()
            let took = ContinuousClock.now - closing
            #expect(took < Consumer.closeMax + Self.slack, "close: \(took)")
            inTime("key scan") {
                _ = try KeyScan.run(
                    Array("k".utf8), in: Self.partitions[1], brokers: brokers, countMax: 10, waitMax: Self.limit)
            }
            inTime("topic scan") {
                _ = try TopicScan.run("t", brokers: brokers, scanMax: 10, countMax: 10, waitMax: Self.limit) { _ in
                    true
                }
            }
            inTime("times") {
                _ = try MessageTimestamps(brokers: brokers).load([Self.partitions[1]: 0], waitMax: Self.limit)
            }
        }
    }

    @Test(arguments: Fault.allCases) func producerCallsAndDestructionTimeOut(fault: Fault) async throws {
        try await withFault(fault) { brokers, begin in
            try produce(["a"], at: brokers)
            begin()
            let took = try ContinuousClock().measure {
                var producer = try Producer(brokers: brokers)
                for key in 0..<50 as Range<UInt8> { try producer.send("t", key: [key], value: [1]) }
                inTime("flush") { producer.flush(waitMax: Self.limit) }
                inTime("purge") { producer.purge() }
                _ = producer.deliveries(waitMax: .zero)
            }
            #expect(took < .seconds(5) + Self.slack, "end: \(took)")
        }
    }

    /// One request per partition would take 200 s.
    @Test func thousandPartitionsAreQueriedInOneBatch() async throws {
        try await withProxiedCluster(topics: ["t": 1_000]) { _, proxies in
            let partitions = (0..<1_000).map { TopicPartition(topic: "t", partition: $0) }
            // Fetching 1,000 partitions a hundred times a second would saturate the processors.
            let properties = fastGroup.merging(["fetch.wait.max.ms": "500"]) { $1 }
            var consumer = try Consumer(brokers: proxies.address, group: "g", topics: ["t"], properties: properties)
            try wait {
                _ = try consumer.nextBatch(countMax: 1, waitMax: .milliseconds(50))
                return consumer.assignment.count == 1_000
            }
            for broker in 1...3 { proxies.setRoundTrip(.milliseconds(100), of: broker) }
            var took = Duration.zero
            // The coordinator's timeout is one second: on a slow machine not every attempt succeeds.
            try wait {
                let began = ContinuousClock.now
                let result = try? consumer.beginnings(of: partitions, waitMax: .seconds(10)).found
                took = ContinuousClock.now - began
                _ = try consumer.nextBatch(countMax: 1, waitMax: .milliseconds(50))
                return result?.count == 1_000
            }
            #expect(took < .seconds(60), "\(took)")
            consumer.close()
        }
    }

    private func inTime(_ call: String, _ body: () throws -> Void) {
        // A query requests metadata once or twice, and waits for at most three leaders and two partition ends.
        let took = ContinuousClock().measure { try? body() }
        #expect(took < Self.limit * 6 + Self.slack, "\(call): \(took)")
    }

    /// Lends the brokers' addresses, and a closure that starts the fault. Broker 2 leads partition 1.
    private func withFault(_ fault: Fault, _ body: @Sendable (String, () -> Void) throws -> Void) async throws {
        try await withProxiedCluster(topics: ["t": 3]) { cluster, proxies in
            for place in Self.partitions { cluster.lead("t", place.partition, by: place.partition + 1) }
            cluster.coordinate("g", by: 2)
            try body(proxies.address) {
                switch fault {
                case .oneFrozen: proxies.freeze(2)
                case .oneCut: proxies.cut(2)
                case .allFrozen: for broker in 1...3 { proxies.freeze(broker) }
                case .allCut: for broker in 1...3 { proxies.cut(broker) }
                case .leaderless: cluster.lead("t", 1, false)
                }
            }
        }
    }
}
