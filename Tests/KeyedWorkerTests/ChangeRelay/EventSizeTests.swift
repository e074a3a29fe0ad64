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

/// How large a message becomes: one that is larger than a topic takes would keep its topic waiting.
@Suite(.ownThreads) struct EventSizeTests {
    /// The most that a broker takes, and a producer sends, when nobody has said otherwise (librdkafka's
    /// `message.max.bytes`; Kafka's `max.message.bytes` is 1,048,588).
    private static let messageBytesMax = 1_000_000
    /// What a service adds to an object beside its person's fields: a command's choices and messages are the most.
    private static let ownBytesMax = 100_000

    /// Numbers grow most of all that a device may write: `1e64` is written out.
    private static let widest: String = {
        var json = #"{"note": ["#
        while json.utf8.count < Kind.fieldsBytesMax - 7 { json += "1e64," }
        return json.dropLast() + "]}"
    }()

    @Test func theLargestObjectIsPublished() async throws {
        #expect(Self.widest.utf8.count <= Kind.fieldsBytesMax && Self.widest.utf8.count > Kind.fieldsBytesMax - 8)
        let fields = try CanonicalJSON(Self.widest)
        #expect(fields.bytes.count > Kind.fieldsBytesMax * 13)
        #expect(fields.bytes.count + Self.ownBytesMax < Self.messageBytesMax)
        try await withMockCluster(topics: partitionCounts) { cluster in
            var flow = try Flow(cluster)
            // With the longest address, and as much as services add.
            let person = String(repeating: "a", count: 64) + "@" + String(repeating: "b", count: 63) + ".example.com"
            let key = try flow.key(.user(person), .timeEntry, UUID())
            let own = #"{"status": "\#(String(repeating: "x", count: Self.ownBytesMax - 20))"}"#
            let whole = try fields.merging(CanonicalJSON(own))
            #expect(whole.bytes.count > 970_000)
            var batch = WriteBatch(environment: flow.environment)
            batch.put(key, whole, decision: 0, isEdit: true)
            _ = try batch.commit(on: &flow.connection)
            try flow.publishAll()
            let message = try #require(try flow.read(Topics.entry, countMin: 1).first)
            #expect(message.value?.count == whole.bytes.count)
        }
    }

    /// Where less is allowed the topic waits, the others go on, and what is to be done is said.
    @Test func oneThatIsTooLargeStopsNoOtherTopic() async throws {
        try await withMockCluster(topics: partitionCounts) { cluster in
            var flow = try Flow(cluster)
            let log = Lines()
            var relay = try Relay(
                conninfo: flow.conninfo, brokers: cluster.address,
                properties: ["reconnect.backoff.max.ms": "100", "message.max.bytes": "20000"], logger: log.logger,
                pageCountMax: 100)
            let large = try flow.key(.user("ana@example.com"), .timeEntry, UUID())
            // Larger than this relay may send, and no larger: a session that waits for long is ended.
            try flow.put(large, #"{"note": "\#(String(repeating: "x", count: 30_000))"}"#)
            let other = try flow.key(.users, .realms, UUID())
            try flow.put(other, #"{"userId": "x"}"#)
            try wait("the others") {
                _ = try relay.step(waitMax: .milliseconds(5))
                return try flow.relayed().position == flow.counter()
            }
            #expect(try flow.read(Topics.realm, countMin: 1).count == 1)
            let errors = log.errors.filter { $0.contains("topic=entry.events") }
            #expect(errors.count == 1 && errors[0].contains("raise the topic's max.message.bytes"), "\(log.errors)")
            #expect(try flow.connection.run("SELECT FROM realm.republish WHERE topic = 'entry.events'").count == 1)
        }
    }
}
