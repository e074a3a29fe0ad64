import Essentials
import Foundation
import HTTPClient
import Kafka
import Model
import TestSupport
import Testing

@testable import LagMonitor
@testable import LagMonitoring

/// A topic's partitions and consumer groups.
@Suite(.ownThreads) struct ConsoleTopicTests {
    private struct TopicPage: Decodable {
        struct Group: Decodable {
            let name: String
            let memberCount: Int?
        }
        struct Partition: Decodable {
            let group: String
            let partition: Int32
            let committed: Int64?
            let end: Int64
            let lag: Int64
        }
        let groups: [Group]
        let partitions: [Partition]
        let total: Int
        let isComplete: Bool
    }

    private func page(_ name: String, _ visitor: ConsoleVisitor) async throws -> TopicPage {
        let response = try await visitor.send("GET", "/api/topic?name=\(name)")
        return try JSONDecoder().decode(TopicPage.self, from: Data(response.body))
    }

    @Test func topicHasItsPartitionsAndGroups() async throws {
        try await withConsole { fixture in
            var generator = SnapshotGenerator(topics: ["a", "b"], partitionCount: 3)
            var snapshot = generator.snapshot(at: 1_800_000_100_000)
            snapshot.groups = ["readers", "others"].map {
                MonitorSnapshot.Group(name: $0, memberCount: 2, memberIDs: ["x", "y"], isRebalancing: false)
            }
            fixture.board.publish(snapshot)
            let visitor = ConsoleVisitor(fixture)
            _ = try await visitor.signIn()
            let topic = try await page("a", visitor)
            #expect(topic.groups.map(\.name) == ["readers"] && topic.groups[0].memberCount == 2)
            #expect(topic.partitions.map(\.partition) == [0, 1, 2] && topic.total == 3 && topic.isComplete)
            #expect(topic.partitions.allSatisfy { $0.group == "readers" && $0.end - ($0.committed ?? 0) == $0.lag })
            #expect(try await page("c", visitor).partitions.isEmpty)
            #expect(try await visitor.send("GET", "/api/topic").status == 400)
        }
    }

    private struct MessagePage: Decodable {
        struct Message: Decodable {
            let id: String
            let position: Int64
            let fields: String?
        }
        let messages: [Message]
        let scanned: Int
        let available: Int
    }

    private func messages(_ query: String, _ visitor: ConsoleVisitor) async throws -> MessagePage {
        let response = try await visitor.send("GET", "/api/topic/messages?name=entry.events&environment=acme\(query)")
        return try JSONDecoder().decode(MessagePage.self, from: Data(response.body))
    }

    @Test func newestMessagesOfAnEnvironmentAreReadAndAudited() async throws {
        let cluster = try MockCluster(topics: ["entry.events": 2])
        let (first, second) = (UUID(), UUID())
        let many = (1...60).map { EntryMessage(id: first, position: $0, fields: #"{"text": "Survey"}"#) }
        let others = [
            EntryMessage(id: second, position: 61, fields: "{}"), EntryMessage(id: second, position: 62, fields: nil),
            EntryMessage(id: UUID(), environment: 2, position: 63, fields: "{}"),
        ]
        try EntryMessage.write(many, to: cluster.address)
        let written = Timestamp.now().millisecondsSinceEpoch
        while Timestamp.now().millisecondsSinceEpoch == written { await Task.yield() }
        try EntryMessage.write(others, to: cluster.address)
        try await withConsole(brokers: cluster.address) { fixture in
            let visitor = ConsoleVisitor(fixture)
            _ = try await visitor.signIn()
            let path = "/api/topic/messages?name=entry.events"
            #expect(try await visitor.send("GET", path).status == 400)
            #expect(try await visitor.send("GET", path + "&environment=other").status == 404)
            #expect(try await visitor.send("GET", "/api/topic/messages?name=x&environment=acme").status == 404)
            #expect(try fixture.acts("payload.viewed").isEmpty)
            let page = try await messages("", visitor)
            #expect(page.scanned == 63 && page.available == 63)
            let positions = page.messages.map(\.position)
            #expect(positions.count == 50 && positions.prefix(3).contains(60) && !positions.contains(63))
            #expect(Set(positions).isSuperset(of: [61, 62]))
            let deleted = try await messages("&key=\(second.uuidString)", visitor)
            #expect(deleted.messages.map(\.position) == [62, 61] && deleted.messages.map(\.fields) == [nil, "{}"])
            #expect(deleted.messages.allSatisfy { $0.id == second.text })
            let records = try fixture.acts("payload.viewed")
            #expect(records == ["entry.events", second.text].map { "console:ana@example.com \($0)" })
        }
        withExtendedLifetime(cluster) {}
    }

    @Test func messagesOfOwnKindsAreRead() async throws {
        let topic = "own.acme.inspections"
        let cluster = try MockCluster(topics: [topic: 2])
        let mine = EntryMessage(id: UUID(), position: 1, fields: "{}")
        let other = EntryMessage(id: UUID(), environment: 2, position: 2, fields: "{}")
        try EntryMessage.write([mine, other], to: cluster.address, topic: topic, kind: "Inspection")
        try await withConsole(brokers: cluster.address) { fixture in
            let visitor = ConsoleVisitor(fixture)
            _ = try await visitor.signIn()
            let response = try await visitor.send("GET", "/api/topic/messages?name=\(topic)&environment=acme")
            let page = try JSONDecoder().decode(MessagePage.self, from: Data(response.body))
            #expect(page.messages.map(\.id) == [mine.id.text] && page.available == 2)
        }
        withExtendedLifetime(cluster) {}
    }

    @Test func unavailableBrokerIsReported() async throws {
        try await withConsole { fixture in
            let visitor = ConsoleVisitor(fixture)
            _ = try await visitor.signIn()
            let response = try await visitor.send("GET", "/api/topic/messages?name=entry.events&environment=acme")
            #expect(response.status == 503)
            #expect(String(decoding: response.body, as: UTF8.self).contains("The messages cannot be read: "))
        }
    }

    /// Of very many partitions, only those with a problem are stored.
    @Test func partitionsAreLimited() {
        let count = Int32(MonitorSnapshot.partitionCountMax + 1)
        func lags(expired: Set<Int32>) -> [PartitionLag] {
            (0..<count).map { number in
                let partition = TopicPartition(topic: "a", partition: number)
                let first: Int64 = expired.contains(number) ? 5 : 0
                return PartitionLag(
                    group: "g", partition: partition,
                    beginning: Beginning(partition: partition, committed: 0, available: first..<10), hasConsumer: true)
            }
        }
        var snapshot = MonitorSnapshot()
        snapshot.take(lags(expired: [7, 9]))
        #expect(!snapshot.areLagsComplete && snapshot.lags.map(\.partition.partition) == [7, 9])
        #expect(snapshot.sums.count == 1 && snapshot.sums[0].count == Int64(count) * 10 - 10)
    }
}
