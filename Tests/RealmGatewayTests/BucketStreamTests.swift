import Essentials
import Foundation
import HTTPClient
import Model
import ObjectStore
import Postgres
import PowerSyncModel
import Synchronization
import TestSupport
import Testing

@testable import RealmGateway

/// The stream of the PowerSync protocol: a model of its client has the same rows as the realm.
@Suite(.ownThreads) struct BucketStreamTests {
    private static let own = "/users/ana@example.com"

    private func entries(_ realm: Int32, _ count: Int) -> [ObjectKey] {
        (0..<count).map { _ in ObjectKey(realm: realm, kind: .timeEntry, id: UUID()) }
    }

    private func put(_ fixture: GatewayFixture, _ keys: [ObjectKey], _ text: String) throws {
        try fixture.write { batch in
            for (index, key) in keys.enumerated() {
                batch.put(
                    key, try CanonicalJSON("{\"text\":\"\(text) \\\"\(index)\\\" \\\\ ü\",\"submitRequested\":true}"),
                    decision: 0)
            }
        }
    }

    private func same(_ fixture: GatewayFixture, _ device: BucketDevice, _ realm: String = own) async throws {
        let (shown, stored) = (try await device.shown(realm), try fixture.stored(realm))
        #expect(shown == stored, "\(shown.count) shown, \(stored.count) stored")
        #expect(await device.broken == [])
    }

    @Test func firstSyncLiveChangesAndReconnect() async throws {
        try await withGateway(limits: .small) { fixture in
            let realm = try fixture.realm(try .user("ana@example.com"))
            let keys = entries(realm, 240)
            try put(fixture, keys, "first")
            let device = try await BucketDevice(fixture, "ana@example.com")
            try await device.sync()
            try await same(fixture, device)
            #expect(await device.lines.first?.hasPrefix("{\"checkpoint\":{") == true)
            let reader = Task { try await device.follow { _, _ in false } }
            try put(fixture, Array(keys[..<5]), "second")
            try await device.wait("the change") { device in
                device.model.rows.values.count { $0.contains("second") } == 5
            }
            try fixture.write { batch in batch.delete(keys[7], decision: 0) }
            try await device.wait("the deletion") { device in
                !device.model.rows.keys.contains { $0.id.hasPrefix(keys[7].id.text) }
            }
            try put(fixture, entries(realm, 3), "third")
            try await device.wait("more") { $0.model.rows.count > 240 }
            reader.cancel()
            _ = try? await reader.value
            try await same(fixture, device)
            // A short absence, and one that needs a download.
            for count in [10, 200] {
                try put(fixture, Array(keys[20..<(20 + count)]), "absent \(count)")
                try fixture.write { batch in batch.delete(keys[count], decision: 0) }
                try await device.sync()
                try await same(fixture, device)
            }
        }
    }

    @Test(arguments: 1..<12) func cutDownloadLeavesNoDeletedRow(lineCount: Int) async throws {
        try await withGateway(limits: .small) { fixture in
            let realm = try fixture.realm(try .user("ana@example.com"))
            // More than a first page: the download has several lines.
            let keys = entries(realm, 450)
            try put(fixture, keys, "first")
            let device = try await BucketDevice(fixture, "ana@example.com")
            try await device.follow { [counter = Counter()] _, _ in counter.next() >= lineCount }
            try fixture.write { batch in for key in keys[..<225] { batch.delete(key, decision: 0) } }
            try await device.sync()
            try await same(fixture, device)
        }
    }

    @Test func writeCheckpointArrivesWithoutData() async throws {
        try await withGateway(limits: .small) { fixture in
            let realm = try fixture.realm(try .user("ana@example.com"))
            try put(fixture, entries(realm, 3), "first")
            let device = try await BucketDevice(fixture, "ana@example.com")
            try await device.sync()
            await device.write()
            let reader = Task { try await device.follow { model, _ in model.awaited == nil } }
            try await device.wait("the first line") { $0.model.writeCheckpoint == nil && $0.lines.count > 4 }
            let first = try await device.uploaded()
            _ = try await reader.value
            #expect(await device.model.writeCheckpoint == first)
            // A later connection begins with the number, and it grows.
            await device.write()
            let second = try await device.uploaded()
            #expect(second > first)
            try await device.sync()
            #expect(await device.model.awaited == nil)
            #expect(await device.lines.suffix(3).contains { $0.contains("\"write_checkpoint\":\"\(second)\"") })
        }
    }

    @Test func requestedCheckpointNeverFalls() async throws {
        try await withGateway(limits: .small) { fixture in
            let device = try await BucketDevice(fixture, "ana@example.com")
            #expect(try await device.requestCheckpoint("1") == "1")
            #expect(try await device.requestCheckpoint("5") == "5")
            #expect(try await device.requestCheckpoint("3") == "5")
            try await device.sync()
            #expect(await device.model.writeCheckpoint == 5)
            let tooHigh =
                "{\"client_id\":\"\(UUID().text)\",\"checkpoint_request_id\":\"9223372036854775807\"}"
            for (body, name) in [("{}", "client_id"), ("[]", "object"), (tooHigh, "checkpoint_request_id")] {
                let response = try await fixture.client.send(
                    device.request("POST", "/sync/checkpoint-request", text: body))
                #expect(response.status == 400)
                #expect(String(decoding: response.body, as: UTF8.self).contains(name))
            }
            let response = try await fixture.client.send(
                try device.request("GET", "/write-checkpoint2.json?client_id=nonsense"))
            #expect(response.status == 400)
        }
    }

    /// A transaction of several pages is one checkpoint.
    @Test func transactionIsDisplayedAtOnce() async throws {
        try await withGateway(limits: .small) { fixture in
            let keys = entries(try fixture.realm(try .user("ana@example.com")), 70)
            func write(_ text: String) throws {
                try fixture.write { batch in
                    for key in keys { batch.put(key, try CanonicalJSON("{\"text\":\"\(text)\"}"), decision: 0) }
                }
            }
            try write("old")
            let device = try await BucketDevice(fixture, "ana@example.com")
            try await device.sync()
            let writer = Task { try write("new") }
            try await device.follow { model, _ in
                let texts = Set(model.rows.filter { $0.key.type == "TimeEntry" }.values)
                #expect(texts.count == 1, "\(texts)")
                return texts.first?.contains("new") == true || texts.count > 1
            }
            try await writer.value
            try await same(fixture, device)
        }
    }

    @Test func anotherGenerationReplacesTheBuckets() async throws {
        try await withGateway(limits: .small) { fixture in
            let realm = try fixture.realm(try .user("ana@example.com"))
            let keys = entries(realm, 6)
            try put(fixture, keys, "first")
            let device = try await BucketDevice(fixture, "ana@example.com")
            try await device.sync()
            await device.write()
            let lost = try await device.uploaded()
            try restore(fixture)
            // The device waits for a number that the restored database does not have: it gets a higher one.
            try await device.sync()
            #expect(await device.model.writeCheckpoint.map { $0 > lost } == true)
            try await same(fixture, device)
            #expect(await device.model.names.allSatisfy { $0.hasPrefix("2:") })
        }
    }

    /// A client that chooses its numbers sends the last one before it opens the stream: it would not find a higher one
    /// that the server chose.
    @Test(arguments: [true, false]) func chosenNumberIsKeptAfterARestore(isLost: Bool) async throws {
        try await withGateway(limits: .small) { fixture in
            try put(fixture, entries(try fixture.realm(try .user("ana@example.com")), 3), "first")
            let device = try await BucketDevice(fixture, "ana@example.com")
            #expect(try await device.requestCheckpoint("7") == "7")
            try await device.sync()
            try restore(fixture, isNumberLost: isLost)
            #expect(try await device.requestCheckpoint("7") == "7")
            try await device.sync()
            #expect(await device.model.writeCheckpoint == 7)
            #expect(try await device.requestCheckpoint("8") == "8")
        }
    }

    /// An environment that is being moved cannot be written, and devices read on.
    @Test func heldEnvironmentIsReadAfterARestore() async throws {
        try await withGateway(limits: .small) { fixture in
            try put(fixture, entries(try fixture.realm(try .user("ana@example.com")), 3), "first")
            let device = try await BucketDevice(fixture, "ana@example.com")
            try await device.sync()
            _ = try await device.uploaded()
            try restore(fixture)
            try fixture.withDatabase { connection in
                _ = try connection.run(
                    """
                    INSERT INTO realm.move (environment_id, move_id, state) VALUES (1, gen_random_uuid(), 'held')
                    """)
            }
            try await device.sync()
            try await same(fixture, device)
        }
    }

    private func restore(_ fixture: GatewayFixture, isNumberLost: Bool = true) throws {
        try fixture.withDatabase { connection in
            if isNumberLost {
                _ = try connection.run("DELETE FROM store.object WHERE kind = \(Kind.writeCheckpoint.number)")
            }
            _ = try connection.run("UPDATE realm.environment SET generation = generation + 1, position = 1 << 40")
        }
    }

    @Test func subscriptionsOpenOnlyPermittedRealms() async throws {
        try await withGateway(limits: .small) { fixture in
            try put(fixture, entries(try fixture.realm(try .user("ana@example.com")), 2), "own")
            let device = try await BucketDevice(fixture, "ana@example.com")
            try await device.sync(subscriptions: [Self.own, "/manager", "nonsense"], includesDefaults: false)
            try await same(fixture, device)
            #expect(await device.model.names == ["1:\(Self.own)"])
            #expect(await device.model.refused == ["realm": [1, 2]])
        }
    }
}

/// Counts calls.
private final class Counter: Sendable {
    private let count = Mutex(0)
    func next() -> Int {
        count.withLock {
            $0 += 1; return $0
        }
    }
}
