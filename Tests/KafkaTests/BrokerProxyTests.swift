import Kafka
import TestSupport
import Testing

/// The faults of TestSupport's proxies affect clients, and can be ended.
@Suite(.ownThreads) struct BrokerProxyTests {
    private static let partitions = (0..<3).map { TopicPartition(topic: "t", partition: $0) }

    @Test func clientsReachEveryBrokerThroughItsProxy() async throws {
        try await withLeaders { proxies in
            let admin = try Admin(brokers: proxies.address)
            let brokers = try admin.metadata().brokers.sorted { $0.id < $1.id }
            #expect(brokers.map { "\($0.host):\($0.port)" }.joined(separator: ",") == proxies.address)
            try produce(["a", "b", "c"], at: proxies.address)
            #expect(try admin.offsets(at: .end, of: Self.partitions).values.reduce(0, +) == 3)
        }
    }

    @Test func frozenBrokerRespondsAfterResume() async throws {
        try await withLeaders { proxies in
            let admin = try Admin(brokers: proxies.address, waitMax: .seconds(1))
            try wait { (try? admin.offsets(at: .end, of: Self.partitions).count) == 3 }
            proxies.freeze(2)
            for broker in 1...3 { #expect(isReached(broker, admin) == (broker != 2)) }
            proxies.resume(2)
            try wait { (try? admin.offsets(at: .end, of: Self.partitions).count) == 3 }
        }
    }

    @Test func disconnectedBrokerIsReachableAfterRestore() async throws {
        try await withLeaders { proxies in
            let admin = try Admin(brokers: proxies.address, waitMax: .seconds(1))
            try wait { (try? admin.offsets(at: .end, of: Self.partitions).count) == 3 }
            proxies.cut(3)
            try wait { !isReached(3, admin) }
            proxies.restore(3)
            try wait { (try? admin.offsets(at: .end, of: Self.partitions).count) == 3 }
        }
    }

    @Test func responsesAreDelayedConcurrently() async throws {
        try await withLeaders { proxies in
            let admin = try Admin(brokers: proxies.address)
            _ = try admin.offsets(at: .end, of: Self.partitions)
            for broker in 1...3 { proxies.setRoundTrip(.milliseconds(300), of: broker) }
            let took = try ContinuousClock().measure { _ = try admin.offsets(at: .end, of: Self.partitions) }
            #expect(took >= .milliseconds(300))
        }
    }

    private func isReached(_ broker: Int, _ admin: borrowing Admin) -> Bool {
        (try? admin.offsets(at: .end, of: [Self.partitions[broker - 1]]).count) == 1
    }

    /// Partition 0 is led by broker 1, and so on.
    private func withLeaders(_ body: @Sendable (BrokerProxies) throws -> Void) async throws {
        try await withProxiedCluster(topics: ["t": 3]) { cluster, proxies in
            for place in Self.partitions { cluster.lead("t", place.partition, by: place.partition + 1) }
            try body(proxies)
        }
    }
}
