import Model
import Postgres
import TestSupport
import Testing

@testable import Fieldpost
@testable import Kafka
@testable import LagMonitoring

/// The commands for topics, with a topic of own kinds.
@Suite(.ownThreads) struct OwnTopicCommandTests {
    private static let topic = "own.acme.inspections"

    @Test func ownTopicIsCheckedAndDescribedWithItsGroups() async throws {
        let environment = try TestEnvironment()
        let conninfo = environment.conninfo
        var connection = try Connection(conninfo)
        try connection.run([
            "INSERT INTO realm.kind (number, name) VALUES (1001, 'Inspection')",
            """
            INSERT INTO realm.own_kind (environment_id, kind, topic, image_paths)
            VALUES (\(environment.id), 1001, \(Self.topic), '{}')
            """,
        ])
        let catalogue = Dictionary(uniqueKeysWithValues: Topics.all.map { ($0.name, $0.partitions) })
        try await withMockCluster(topics: catalogue) { cluster in
            let check = ["topics", "check", "--brokers", cluster.address]
            #expect(try fieldpost(check).status == 0)
            let missing = try fieldpost(check + ["--database", conninfo])
            #expect(missing.status == 1, "\(missing)")
            #expect(missing.output.contains(/FAIL +own.acme.inspections +does not exist/), "\(missing)")
            let doctor = try fieldpost("doctor", "--brokers", cluster.address, "--database", conninfo)
            #expect(doctor.output.contains(/FAIL +topic own.acme.inspections: does not exist/), "\(doctor)")
        }
        try await withMockCluster(topics: catalogue.merging([Self.topic: 12]) { $1 }) { cluster in
            var producer = try Producer(brokers: cluster.address)
            for key in 0..<40 as Range<UInt8> { try producer.send(Self.topic, key: [key], value: [key]) }
            let isFlushed = producer.flush(waitMax: patienceMax)
            #expect(isFlushed)
            let brokers = ["--brokers", cluster.address]
            let unread = try fieldpost(["lag", "--topic", Self.topic] + brokers)
            #expect(unread.status == 0 && unread.output.contains("no listed group"), "\(unread)")
            let admin = try Admin(brokers: cluster.address, waitMax: patienceMax)
            try admin.commit(group: "receipts", [TopicPartition(topic: Self.topic, partition: 1): 0])

            let lag = try fieldpost(["lag", "--topic", Self.topic, "--group", "receipts", "--json"] + brokers).rows()
            #expect(Set(lag.compactMap { $0["partition"] as? Int }) == Set(0..<12), "\(lag)")
            // Also of partitions without a committed offset.
            #expect(lag.reduce(0) { $0 + ($1["lag"] as? Int ?? 0) } == 40)
            #expect(try fieldpost(["topics", "describe", Self.topic] + brokers).output.hasPrefix(Self.topic))
            let scale = ["topics", "scale", Self.topic, "--partitions"]
            let dry = try fieldpost(scale + ["24", "--dry-run"] + brokers)
            #expect(dry.output.contains("12 partitions would become 24"), "\(dry)")
            #expect(try fieldpost(scale + ["6"] + brokers).status == 2)
        }
        let other = try fieldpost("topics", "describe", "owns", "--brokers", "127.0.0.1:1")
        #expect(other.status == 2 && other.errors.contains("own.{environment}.{topic}"), "\(other)")
    }

    /// The mock cluster does not list groups.
    @Test func groupsOfOwnTopicAreThoseWithCommittedOffsets() throws {
        let topic = Topic(own: Self.topic)
        let read = TopicPartition(topic: Self.topic, partition: 1)
        let other = TopicPartition(topic: "orders", partition: 1)
        let groups = [("billing", other), ("receipts", read)].map { name, partition in
            LagSnapshot.Group(
                name: name, isKnown: false, offsets: [partition: 3], memberCount: 2, memberIDs: ["a", "b"],
                isRebalancing: false)
        }
        var history = LagHistory()
        history.take(
            LagSnapshot(
                milliseconds: 0, available: [read: 0..<10, other: 0..<10], groups: groups, problems: [:],
                partitionCounts: [Self.topic: 12, "orders": 2]))
        let facts = BrokerFacts(metadata: ClusterMetadata(topics: [Self.topic: 12], leaderless: [], brokers: []))
        let description = TopicDescription(topic, facts, history)
        #expect(description.groups == ["receipts"])
        #expect(description.partitions.map(\.lag) == [[:], ["receipts": 7]] + Array(repeating: [:], count: 10))
    }
}
