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

/// The size of messages: one that exceeds a topic's limit would defer its topic permanently.
@Suite(.ownThreads) struct EventSizeTests {
    /// The default maximum size of brokers and producers (librdkafka's `message.max.bytes`; Kafka's `max.message.bytes`
    /// is 1,048,588).
    private static let messageBytesMax = 1_000_000
    /// Maximum size of services' own fields of an object: a command's choices and messages are the largest.
    private static let ownBytesMax = 100_000

    /// Numbers grow more than all other values that a device can write: `1e64` is written without its exponent.
    private static let widest: String = {
        var json = #"{"note": ["#
        while json.utf8.count < Kind.fieldsBytesMax - 7 { json += "1e64," }
        return json.dropLast() + "]}"
    }()

    @Test func largestObjectIsPublished() async throws {
        #expect(Self.widest.utf8.count <= Kind.fieldsBytesMax && Self.widest.utf8.count > Kind.fieldsBytesMax - 8)
        let fields = try CanonicalJSON(Self.widest)
        #expect(fields.bytes.count > Kind.fieldsBytesMax * 13)
        #expect(fields.bytes.count + Self.ownBytesMax < Self.messageBytesMax)
        try await withMockCluster(topics: partitionCounts) { cluster in
            var flow = try Flow(cluster)
            // With the longest address and the maximum of services' own fields.
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

    /// With a lower limit the topic is deferred, others continue, and the error contains the required action.
    @Test func oversizedMessageBlocksNoOtherTopic() async throws {
        try await withMockCluster(topics: partitionCounts) { cluster in
            var flow = try Flow(cluster)
            let log = LogCapture()
            var relay = try Relay(
                conninfo: flow.conninfo, brokers: cluster.address,
                properties: ["reconnect.backoff.max.ms": "100", "message.max.bytes": "20000"], logger: log.logger,
                pageCountMax: 100)
            let large = try flow.key(.user("ana@example.com"), .timeEntry, UUID())
            // Slightly larger than this relay may send: a session that waits for long is ended.
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
