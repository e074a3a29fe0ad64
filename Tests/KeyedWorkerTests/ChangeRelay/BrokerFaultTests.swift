import Essentials
import FoundationEssentials
import Kafka
import Model
import ObjectStore
import Postgres
import TestSupport
import Testing

@testable import ChangeRelay
@testable import KeyedWorker

/// Brokers that freeze, fail or have high latency, each behind a proxy.
@Suite(.ownThreads) struct BrokerFaultTests {
    private static let topic = Topics.entry.name
    private static let topics = partitionCounts.mapValues { _ in 1 }.merging([topic: 3]) { $1 }

    /// Partitions of other brokers are published meanwhile, and the rest when the broker recovers.
    @Test(arguments: [true, false]) func failedBrokerDoesNotBlockOthersPartitions(isFrozen: Bool) async throws {
        try await withProxiedCluster(topics: Self.topics) { cluster, proxies in
            var flow = try Flow(cluster)
            lead(cluster)
            let log = LogCapture()
            let conninfo = flow.conninfo
            // The runtime re-creates a failed relay.
            var madeCount = 0
            let make = {
                madeCount += 1
                return try Relay(
                    conninfo: conninfo, brokers: proxies.address, properties: ["reconnect.backoff.max.ms": "100"],
                    logger: log.logger, pageCountMax: 100)
            }
            var relay = try make()
            var entries = try add(30, to: &flow)
            try run(&relay, make, "the first") { _ in try flow.relayed().position == flow.counter() }
            let before = try ends(cluster)
            if isFrozen { proxies.freeze(2) } else { proxies.cut(2) }
            let fault = ContinuousClock.now
            entries.formUnion(try add(30, to: &flow))
            try run(&relay, make, "the others") { _ in
                let now = try ends(cluster)
                return now[0] > before[0] && now[2] > before[2]
            }
            #expect(ContinuousClock.now - fault < .seconds(15))
            // The position passes rejected messages: their topic is deferred, and later ones are not blocked.
            try run(&relay, make, "all positions") { _ in try flow.relayed().position == flow.counter() }
            let problem = relay.problem
            #expect(problem?.contains("partition 1") == true, "\(problem ?? "ready")")
            let later = try add(30, to: &flow)
            try run(&relay, make, "what follows") { _ in try flow.relayed().position == flow.counter() }
            entries.formUnion(later)
            let errors = log.errors.filter { $0.contains("partition 1") }
            #expect(1...madeCount ~= errors.count, "\(errors)")

            if isFrozen { proxies.resume(2) } else { proxies.restore(2) }
            try run(&relay, make, "deferred topics") { problem in
                try problem == nil && flow.connection.run("SELECT FROM realm.republish").count == 0
            }
            var realms = RealmPathCache()
            var published: Set<UUID> = []
            let count = try ends(cluster).reduce(0, +)
            for message in try flow.read(Topics.entry, countMin: Int(count)) {
                published.insert(try Event(message, &realms).id)
            }
            #expect(published == entries)
        }
    }

    /// A relay that reaches no broker is not ready and releases the lock; one that reaches them takes over.
    @Test(arguments: [true, false]) func relayWithoutBrokerReleasesLeadership(isIdle: Bool) async throws {
        try await withProxiedCluster(topics: Self.topics) { cluster, proxies in
            var flow = try Flow(cluster)
            lead(cluster)
            var first = try flow.makeRelay(brokers: proxies.address)
            _ = try add(10, to: &flow)
            try run(&first, "the first") { _ in try flow.relayed().position == flow.counter() }
            #expect(first.problem == nil)
            for broker in 1...3 { proxies.freeze(broker) }
            if !isIdle { _ = try add(10, to: &flow) }
            try run(&first, "the relay is not ready") { $0 != nil }
            var failure: (any Error)?
            try wait("the relay releases leadership") {
                do { _ = try first.step(waitMax: .milliseconds(5)) } catch { failure = error }
                return failure != nil
            }
            #expect(failure is KafkaError || failure is Relay.BrokersUnavailable, "\(failure as Any)")

            // As the runtime does: the relay is re-created, and does not acquire the lock again.
            first = try flow.makeRelay(brokers: proxies.address)
            var second = try flow.makeRelay()
            _ = try add(10, to: &flow)
            try wait("the second publishes") {
                let isFirstActive = try first.step(waitMax: .zero)
                #expect(!isFirstActive && first.problem != nil)
                _ = try second.step(waitMax: .milliseconds(5))
                return try flow.relayed().position == flow.counter()
            }
        }
    }

    /// 1,000 partitions whose leaders have a latency of 100 ms: the check completes, publishing does not wait for it,
    /// and no session is idle for longer than PostgreSQL allows.
    @Test func thousandRemotePartitionsAreChecked() async throws {
        try await withProxiedCluster(topics: Self.topics.merging(["many": 1_000]) { $1 }) { cluster, proxies in
            var flow = try Flow(cluster)
            lead(cluster)
            for broker in 1...3 { proxies.setRoundTrip(.milliseconds(100), of: broker) }
            try flow.connection.run(
                "INSERT INTO realm.relay_offset SELECT 'many', n, -1 FROM generate_series(0, 999) n")
            var relay = try flow.makeRelay(brokers: proxies.address)
            let session = try add(10, to: &flow)
            try run(&relay, "all positions") { _ in try flow.relayed().position == flow.counter() }
            #expect(!session.isEmpty && relay.connection.openCount == 1)

            // One of them ends below its confirmed offset: the detection shows that all were queried.
            let last = TopicPartition(topic: "many", partition: 999)
            relay.offsets[last] = 5
            let began = ContinuousClock.now
            #expect(throws: Relay.ContentLost.self) {
                try run(&relay, "the loss") { _ in false }
            }
            #expect(ContinuousClock.now - began < .seconds(60))
            #expect(try flow.relayed().epoch == 2)
        }
    }

    /// A former leader that was frozen and resumes has fewer messages than were confirmed.
    @Test func formerLeaderIsNotTakenForLostContent() async throws {
        try await withProxiedCluster(topics: Self.topics) { cluster, proxies in
            let former = try MockCluster(topics: Self.topics, brokers: 3)
            defer { withExtendedLifetime(former) {} }
            for cluster in [cluster, former] { lead(cluster) }
            var flow = try Flow(cluster)
            var relay = try flow.makeRelay(brokers: proxies.address)
            _ = try add(30, to: &flow)
            try run(&relay, "all positions") { _ in try flow.relayed().position == flow.counter() }
            try proxies.replace(2, byThatOf: former.address)
            try wait("a partition ends too early") {
                _ = try relay.step(waitMax: .milliseconds(5))
                return relay.shortened == [TopicPartition(topic: Self.topic, partition: 1)]
            }
            // The broker learns of its successor.
            try proxies.replace(2, byThatOf: cluster.address)
            try wait("the partition is complete") {
                _ = try relay.step(waitMax: .milliseconds(5))
                return relay.shortened.isEmpty
            }
            _ = try add(30, to: &flow)
            try run(&relay, "later positions") { _ in try flow.relayed().position == flow.counter() }
            #expect(try flow.relayed().epoch == 1)
        }
    }

    private func lead(_ cluster: MockCluster) {
        for partition in 0..<3 as Range<Int32> { cluster.lead(Self.topic, partition, by: partition + 1) }
        for other in Self.topics.keys where other != Self.topic { cluster.lead(other, 0, by: 1) }
    }

    private func ends(_ cluster: MockCluster) throws -> [Int64] {
        let partitions = (0..<3).map { TopicPartition(topic: Self.topic, partition: $0) }
        let ends = try Admin(brokers: cluster.address).offsets(at: .end, of: partitions)
        return partitions.map { ends[$0] ?? 0 }
    }

    private func add(_ count: Int, to flow: inout Flow) throws -> Set<UUID> {
        var batch = WriteBatch(environment: flow.environment)
        let ids = Set((0..<count).map { _ in UUID() })
        for id in ids {
            let key = try flow.key(.user("ana@example.com"), .timeEntry, id)
            batch.put(key, try CanonicalJSON(#"{"text": "\#(id)"}"#), decision: 0)
        }
        _ = try batch.commit(on: &flow.connection)
        return ids
    }

    private func run(
        _ relay: inout Relay, _ make: () throws -> Relay, _ what: String,
        until isDone: (_ problem: String?) throws -> Bool
    ) throws {
        try wait(what) {
            do { _ = try relay.step(waitMax: .milliseconds(5)) } catch is KafkaError { relay = try make() }
            return try isDone(relay.problem)
        }
    }

    private func run(_ relay: inout Relay, _ what: String, until isDone: (_ problem: String?) throws -> Bool) throws {
        try wait(what) {
            _ = try relay.step(waitMax: .milliseconds(5))
            return try isDone(relay.problem)
        }
    }
}
