import Essentials
import FoundationEssentials
import Kafka
import KindSchema
import Model
import ObjectStore
import Postgres
import TestSupport
import Testing

@testable import ChangeRelay
@testable import KeyedWorker

/// Topics of kinds that environments declare.
@Suite(.ownThreads) struct OwnTopicTests {
    private static let topic = Topic(own: "own.acme.inspections")
    private static let topics = partitionCounts.merging([topic.name: topic.partitions]) { first, _ in first }
    private static let inspection = #"{"realms":["user"],"topic":"inspections","properties":{"site":{}}}"#
    private static let unpublished = #"{"realms":["user"],"properties":{"site":{}}}"#

    private func file(_ kinds: [(name: String, declaration: String)]) -> String {
        "{\"kinds\":{" + kinds.map { "\"\($0.name)\":\($0.declaration)" }.joined(separator: ",") + "}}"
    }

    @Test func objectsOfDeclaredKindsArePublishedOnTheirTopic() async throws {
        try await withMockCluster(topics: Self.topics) { cluster in
            var flow = try Flow(cluster)
            let kinds = try flow.apply(
                file([("Inspection", Self.inspection), ("Draft", Self.unpublished)]))
            let (published, draft) = (try #require(kinds["Inspection"]), try #require(kinds["Draft"]))
            let (realm, id) = (try RealmPath.user("ana@example.com"), UUID())
            let key = try flow.key(realm, published, id)
            let first = try #require(try flow.put(key, #"{"site": "Roof"}"#))
            try flow.put(try flow.key(realm, draft, UUID()), #"{"site": "Roof"}"#)
            try flow.put(try flow.key(realm, .timeEntry, UUID()), #"{"text": "a"}"#)
            try flow.publishAll()
            let second = try #require(try flow.put(key, #"{"site": "Wall"}"#))
            try flow.publishAll()
            let third = try #require(try flow.delete(key))
            try flow.publishAll()

            let messages = try flow.read(Self.topic, countMin: 3)
            #expect(
                messages.map { $0.headerText("fieldpost-position") } == [first, second, third].map(String.init))
            #expect(messages.map { $0.headerText("ce_type") } == Array(repeating: "fieldpost.Inspection", count: 3))
            #expect(messages[0].headerText("ce_subject") == "\(realm)/Inspection/\(id.text)")
            #expect(messages.map { $0.key.map { String(decoding: $0, as: UTF8.self) } } == [id.text, id.text, id.text])
            let values = messages.map { $0.value.map { String(decoding: $0, as: UTF8.self) } }
            #expect(values == [#"{"site": "Roof"}"#, #"{"site": "Wall"}"#, nil])
            #expect(try flow.read(Topics.entry, countMin: 1).count == 1)
        }
    }

    /// An object that was written before its kind had a topic is published when it gets one.
    @Test func newTopicGetsExistingObjects() async throws {
        try await withMockCluster(topics: Self.topics) { cluster in
            var flow = try Flow(cluster)
            let kinds = try flow.apply(file([("Inspection", Self.unpublished)]))
            let kind = try #require(kinds["Inspection"])
            let ids = (0..<150).map { _ in UUID() }
            for id in ids { try flow.put(try flow.key(.user("ana@example.com"), kind, id), #"{"site": "Roof"}"#) }
            try flow.publishAll()
            #expect(try flow.read(Self.topic, countMin: 0).isEmpty)
            try flow.apply(file([("Inspection", Self.inspection)]))
            try flow.publish("the republication") { flow in
                try flow.connection.run("SELECT FROM realm.republish").count == 0
            }
            #expect(try subjects(flow.read(Self.topic, countMin: ids.count)) == Set(ids))
        }
    }

    /// A new epoch, after the broker lost its content, has the objects of declared kinds too.
    @Test func newEpochRepublishesDeclaredKinds() async throws {
        try await withMockCluster(topics: Self.topics) { cluster in
            var flow = try Flow(cluster)
            let kinds = try flow.apply(file([("Inspection", Self.inspection), ("Draft", Self.unpublished)]))
            for kind in ["Inspection", "Draft"] {
                let kind = try #require(kinds[kind])
                try flow.put(try flow.key(.user("ana@example.com"), kind, UUID()), #"{"site": "Roof"}"#)
            }
            try flow.publishAll()
            try flow.connection.run(RelayStore.newEpoch)
            try flow.publishAll()
            let messages = try flow.read(Self.topic, countMin: 2)
            #expect(messages.map { $0.headerText("fieldpost-epoch") } == ["1", "2"])
            #expect(Set(messages.map { $0.headerText("ce_subject") }).count == 1)
        }
    }

    /// A topic that was not created yet blocks nothing, and gets everything once it exists.
    @Test func missingTopicBlocksNoOthers() async throws {
        try await withMockCluster(topics: Self.topics) { cluster in
            var flow = try Flow(cluster)
            cluster.spoil(topic: Self.topic.name, with: 3)
            let kinds = try flow.apply(file([("Inspection", Self.inspection)]))
            let kind = try #require(kinds["Inspection"])
            let log = LogCapture()
            var relay = try flow.makeRelay(logger: log.logger)
            let ids = (0..<30).map { _ in UUID() }
            for id in ids { try flow.put(try flow.key(.user("ana@example.com"), kind, id), #"{"site": "Roof"}"#) }
            try flow.put(try flow.key(.user("ana@example.com"), .timeEntry, UUID()), #"{"text": "a"}"#)
            func run(_ what: String, until isDone: () throws -> Bool) throws {
                try wait(what) {
                    _ = try relay.step(waitMax: .milliseconds(5))
                    return try isDone()
                }
            }
            try run("all positions") { try flow.relayed().position == flow.counter() }
            #expect(try flow.read(Topics.entry, countMin: 1).count == 1)
            #expect(relay.problem == nil && log.errors.contains { $0.contains("topic=\(Self.topic.name)") })
            cluster.spoil(topic: Self.topic.name, with: 0)
            try run("the deferred topic") { try flow.connection.run("SELECT FROM realm.republish").count == 0 }
            #expect(try subjects(flow.read(Self.topic, countMin: ids.count)) == Set(ids))
        }
    }

    private func subjects(_ messages: [Message]) -> Set<UUID> {
        Set(messages.compactMap { $0.headerText("ce_subject")?.split(separator: "/").last.flatMap { UUID(ascii: $0) } })
    }
}

extension Flow {
    /// Makes a schema file the environment's newest version, as the command does.
    ///
    /// - Returns: The declared kinds by their names.
    @discardableResult
    fileprivate mutating func apply(_ file: String) throws -> [String: Kind] {
        let application = try KindApplication(try SchemaValue(Array(file.utf8)), to: environment, on: &connection)
        let environment = environment
        _ = try application.commit(by: "test", on: &connection) { _ in
            application.newTopics.map { Republish.request($0, in: environment) }
        }
        let catalogue = try KindCatalogue.load(environment, on: &connection)
        return Dictionary(uniqueKeysWithValues: catalogue.ownKinds.map { ($0.rawValue, $0) })
    }
}
