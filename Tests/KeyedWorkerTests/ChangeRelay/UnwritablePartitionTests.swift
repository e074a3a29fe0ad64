import Essentials
import FoundationEssentials
import HTTPClient
import Kafka
import Model
import ObjectStore
import Postgres
import TestSupport
import Testing

@testable import ChangeRelay
@testable import KeyedWorker

/// A topic or partition that cannot be written blocks no others, and is republished later.
@Suite(.ownThreads) struct UnwritablePartitionTests {
    /// UNKNOWN_TOPIC_OR_PART, TOPIC_AUTHORIZATION_FAILED, MSG_SIZE_TOO_LARGE
    @Test(arguments: [3, 29, 10] as [Int32]) func missingTopicBlocksNoOthers(code: Int32) async throws {
        try await withMockCluster(topics: partitionCounts) { cluster in
            var flow = try Flow(cluster)
            let log = LogCapture()
            cluster.spoil(topic: Topics.realm.name, with: code)
            var relay = try flow.makeRelay(logger: log.logger)
            let (users, entries) = (try add(30, .realms, to: &flow), try add(20, .timeEntry, to: &flow))
            try run(&relay, "all positions") { try flow.relayed().position == flow.counter() }
            let published = try flow.read(Topics.entry, countMin: entries.count)
            #expect(published.count == entries.count)
            #expect(log.errors.filter { $0.contains("topic=realm.events") }.count == 1)
            // Brokers do not list a topic that a client is not authorized to describe.
            #expect(log.errors.contains { $0.contains("is not authorized to describe it") })
            #expect(relay.problem?.contains("realm.events") == true)

            cluster.spoil(topic: Topics.realm.name, with: 0)
            try run(&relay, "what is deferred") { try flow.connection.run("SELECT FROM realm.republish").count == 0 }
            #expect(try ids(flow.read(Topics.realm, countMin: users.count)) == users)
            #expect(relay.problem == nil)
        }
    }

    @Test func leaderlessPartitionBlocksNoOthers() async throws {
        try await withMockCluster(topics: [Topics.entry.name: 2, Topics.realm.name: 1]) { cluster in
            var flow = try Flow(cluster)
            cluster.lead(Topics.entry.name, 0, false)
            var relay = try flow.makeRelay()
            let entries = try add(40, .timeEntry, to: &flow)
            try run(&relay, "all positions") { try flow.relayed().position == flow.counter() }
            let led = TopicPartition(topic: Topics.entry.name, partition: 1)
            let count = try Admin(brokers: cluster.address).watermarks(led).count
            #expect(count > 0 && count < entries.count)

            cluster.lead(Topics.entry.name, 0, true)
            try run(&relay, "what is deferred") { try flow.connection.run("SELECT FROM realm.republish").count == 0 }
            #expect(try ids(flow.read(Topics.entry, countMin: entries.count + count)) == entries)
        }
    }

    /// Messages were in flight to the partition.
    @Test func partitionLosingItsLeaderBlocksBriefly() async throws {
        try await withMockCluster(topics: [Topics.entry.name: 2]) { cluster in
            var flow = try Flow(cluster)
            var relay = try flow.makeRelay()
            var entries = try add(10, .timeEntry, to: &flow)
            try run(&relay, "the first") { try flow.relayed().position == flow.counter() }
            cluster.lead(Topics.entry.name, 0, false)
            entries.formUnion(try add(10, .timeEntry, to: &flow))
            try run(&relay, "the others") { try flow.relayed().position == flow.counter() }
            cluster.lead(Topics.entry.name, 0, true)
            try run(&relay, "what is deferred") { try flow.connection.run("SELECT FROM realm.republish").count == 0 }
            #expect(try ids(flow.read(Topics.entry, countMin: entries.count)) == entries)
        }
    }

    @Test func removedPartitionBlocksNothing() async throws {
        try await withMockCluster(topics: partitionCounts) { cluster in
            var flow = try Flow(cluster)
            try flow.publishAll()
            // The mock cluster creates a topic when its metadata is requested.
            cluster.spoil(topic: Topics.poll.name, with: 3)
            try flow.connection.run("INSERT INTO realm.relay_offset VALUES ('poll.events', 0, 9)")
            let users = try add(5, .realms, to: &flow)
            try flow.publishAll()
            let before = try flow.relayed()
            #expect(before.epoch == 1)

            // A topic that was re-created with fewer partitions has lost the content of the others.
            try flow.connection.run("INSERT INTO realm.relay_offset VALUES ('realm.events', 99, 9)")
            try flow.publish("everything republished") { flow in
                let relayed = try flow.relayed()
                return relayed.epoch == 2 && relayed.publishedEpoch == 2
            }
            #expect(try ids(flow.read(Topics.realm, countMin: users.count * 2)) == users)
        }
    }

    @Test func keysMapToTheProducersPartition() async throws {
        try await withMockCluster(topics: ["t": 7]) { cluster in
            var producer = try Producer(brokers: cluster.address)
            let keys = (0..<50).map { _ in Array(UUID().text.utf8) }
            for (index, key) in keys.enumerated() { try producer.send("t", key: key, value: [1], tag: UInt64(index)) }
            let isFlushed = producer.flush(waitMax: deadlineMax)
            #expect(isFlushed)
            for delivery in producer.deliveries(waitMax: .zero) {
                #expect(
                    delivery.topicPartition.partition
                        == TopicPartition.partition(ofKey: keys[Int(delivery.tag)], count: 7))
            }
        }
    }

    private func add(_ count: Int, _ kind: Kind, to flow: inout Flow) throws -> Set<UUID> {
        var batch = WriteBatch(environment: flow.environment)
        let ids = Set((0..<count).map { _ in UUID() })
        let realm: RealmPath = kind == .realms ? .users : try .user("ana@example.com")
        for id in ids {
            batch.put(try flow.key(realm, kind, id), try CanonicalJSON(#"{"userId": "\#(id)"}"#), decision: 0)
        }
        _ = try batch.commit(on: &flow.connection)
        return ids
    }

    private func ids(_ messages: [Message]) throws -> Set<UUID> {
        var realms = RealmPathCache()
        return Set(try messages.map { try Event($0, &realms).id })
    }

    private func run(_ relay: inout Relay, _ what: String, until isDone: () throws -> Bool) throws {
        try wait(what) {
            _ = try relay.step(waitMax: .milliseconds(5))
            return try isDone()
        }
    }
}
