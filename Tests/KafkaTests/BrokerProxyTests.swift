import Kafka
import TestSupport
import Testing

/// The faults that the proxies of TestSupport show are real to a client, and end.
@Suite(.ownThreads) struct BrokerProxyTests {
    private static let places = (0..<3).map { TopicPartition(topic: "t", partition: $0) }

    @Test func clientsReachEveryBrokerThroughItsProxy() async throws {
        try await withLeaders { proxies in
            let admin = try Admin(brokers: proxies.address)
            let brokers = try admin.metadata().brokers.sorted { $0.id < $1.id }
            #expect(brokers.map { "\($0.host):\($0.port)" }.joined(separator: ",") == proxies.address)
            try produce(["a", "b", "c"], at: proxies.address)
            #expect(try admin.offsets(at: .end, of: Self.places).values.reduce(0, +) == 3)
        }
    }

    @Test func aFrozenBrokerAnswersOnceItResumes() async throws {
        try await withLeaders { proxies in
            let admin = try Admin(brokers: proxies.address, waitMax: .seconds(1))
            try wait { (try? admin.offsets(at: .end, of: Self.places).count) == 3 }
            proxies.freeze(2)
            for broker in 1...3 { #expect(isReached(broker, admin) == (broker != 2)) }
            proxies.resume(2)
            try wait { (try? admin.offsets(at: .end, of: Self.places).count) == 3 }
        }
    }

    @Test func aBrokerThatIsCutIsReachedOnceItIsRestored() async throws {
        try await withLeaders { proxies in
            let admin = try Admin(brokers: proxies.address, waitMax: .seconds(1))
            try wait { (try? admin.offsets(at: .end, of: Self.places).count) == 3 }
            proxies.cut(3)
            try wait { !isReached(3, admin) }
            proxies.restore(3)
            try wait { (try? admin.offsets(at: .end, of: Self.places).count) == 3 }
        }
    }

    @Test func answersAreDelayedSideBySide() async throws {
        try await withLeaders { proxies in
            let admin = try Admin(brokers: proxies.address)
            _ = try admin.offsets(at: .end, of: Self.places)
            for broker in 1...3 { proxies.setRoundTrip(.milliseconds(300), of: broker) }
            let took = try ContinuousClock().measure { _ = try admin.offsets(at: .end, of: Self.places) }
            #expect(took >= .milliseconds(300))
        }
    }

    private func isReached(_ broker: Int, _ admin: borrowing Admin) -> Bool {
        (try? admin.offsets(at: .end, of: [Self.places[broker - 1]]).count) == 1
    }

    /// Partition 0 is led by broker 1, and so on.
    private func withLeaders(_ body: @Sendable (BrokerProxies) throws -> Void) async throws {
        try await withProxiedCluster(topics: ["t": 3]) { cluster, proxies in
            for place in Self.places { cluster.lead("t", place.partition, by: place.partition + 1) }
            try body(proxies)
        }
    }
}
