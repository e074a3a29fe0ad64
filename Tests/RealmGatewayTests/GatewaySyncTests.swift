import Essentials
import Foundation
import HTTPClient
import Model
import NIOCore
import ObjectStore
import Postgres
import TestSupport
import Testing

@testable import RealmGateway

/// A device's copy converges to the realm, despite interruptions.
@Suite(.ownThreads) struct GatewaySyncTests {
    private func same(_ fixture: GatewayFixture, _ device: GatewayDevice, _ realm: String) async throws {
        let (shown, stored) = (await device.shown(realm), try fixture.stored(realm))
        #expect(shown == stored, "\(shown.count) shown, \(stored.count) stored")
        #expect(await device.repeats == [])
        #expect(await device.linesTooLong == 0)
    }

    private func fill(_ fixture: GatewayFixture, _ realm: Int32, _ count: Int) throws -> [ObjectKey] {
        let keys = (0..<count).map { _ in ObjectKey(realm: realm, kind: .timeEntry, id: UUID()) }
        try fixture.write { batch in
            for (index, key) in keys.enumerated() {
                batch.put(
                    key,
                    try CanonicalJSON("{\"text\":\"\(index)\",\"more\":\"\(String(repeating: "x", count: 400))\"}"),
                    decision: 0)
            }
        }
        return keys.sorted { $0.id.text < $1.id.text }
    }

    @Test func interruptedDownloadIsResumed() async throws {
        try await withGateway(limits: .small) { fixture in
            let realm = try fixture.realm(try .user("ana@example.com"))
            let keys = try fill(fixture, realm, 1500)
            let phone = try await GatewayDevice(fixture, "ana@example.com")
            try await phone.syncInterrupted(afterLines: 6)
            let held = await phone.copy["/users/ana@example.com"]?.count ?? 0
            #expect(held > 100 && held < 1500)
            // Meanwhile, a downloaded object and another one are deleted, and others change.
            let others = try [keys[1], keys[1498]].map(fixture.object)
            try fixture.write { batch in
                batch.delete(keys[0], decision: 0)
                batch.delete(keys[1499], decision: 0)
                for object in others { try batch.patch(object, CanonicalJSON("{\"text\":\"new\"}"), decision: 0) }
            }
            let before = await phone.lineCount
            try await phone.sync()
            try await same(fixture, phone, "/users/ana@example.com")
            #expect(await phone.resets.count == 1)
            #expect(await phone.lineCount - before > 5)
        }
    }

    @Test func deviceOfflineForLongGetsTombstones() async throws {
        try await withGateway(limits: .small) { fixture in
            let realm = try fixture.realm(try .user("ana@example.com"))
            let keys = try fill(fixture, realm, 400)
            let phone = try await GatewayDevice(fixture, "ana@example.com")
            try await phone.sync()
            let others = try keys[200...].map(fixture.object)
            try fixture.write { batch in
                for key in keys[..<150] { batch.delete(key, decision: 0) }
                for object in others { try batch.patch(object, CanonicalJSON("{\"text\":\"new\"}"), decision: 0) }
            }
            let before = await phone.checkpoint
            try await phone.sync()
            #expect(await phone.checkpoint >= before + 350)
            #expect(await phone.resets.count == 1)
            try await same(fixture, phone, "/users/ana@example.com")
        }
    }

    @Test func cursorBelowTheFloorOrOfAnotherGenerationIsReset() async throws {
        try await withGateway { fixture in
            let realm = try fixture.realm(try .user("ana@example.com"))
            let keys = try fill(fixture, realm, 20)
            let phone = try await GatewayDevice(fixture, "ana@example.com")
            try await phone.sync()
            try fixture.write { batch in for key in keys[..<10] { batch.delete(key, decision: 0) } }
            try fixture.withDatabase { connection in
                let outcome = try Compaction.step(
                    fixture.environment, keep: .seconds(-60), countMax: 1000, on: &connection)
                try #require(outcome != .locked)
                let tombstones = try connection.run("SELECT count(*) FROM realm.object WHERE deleted")
                try #require(tombstones[0].value(0, as: Int64.self) == 0)
            }
            try await phone.sync()
            #expect(await phone.resets.count == 2)
            try await same(fixture, phone, "/users/ana@example.com")
            try await phone.sync()
            #expect(await phone.resets.count == 2)

            let following = Task { try await phone.follow() }
            try await phone.wait("live") { $0.checkpointCount >= 4 }
            try fixture.withDatabase { connection in
                _ = try connection.run("UPDATE realm.environment SET generation = 2, position = position + 1000")
            }
            // The stream ends, and the next one starts with a reset.
            _ = await following.result
            try await phone.sync()
            #expect(await phone.resets.count == 3)
            try await same(fixture, phone, "/users/ana@example.com")
        }
    }

    @Test func transactionLongerThanAPageIsOneCheckpoint() async throws {
        try await withGateway(limits: .small) { fixture in
            let realm = try fixture.realm(try .user("ana@example.com"))
            let phone = try await GatewayDevice(fixture, "ana@example.com")
            let following = Task { try await phone.follow() }
            defer { following.cancel() }
            try await phone.wait("live") { $0.checkpointCount >= 1 }
            _ = try fill(fixture, realm, 110)
            try await phone.wait("the checkpoint") { $0.checkpointCount > 1 }
            try await same(fixture, phone, "/users/ana@example.com")
            #expect(await phone.checkpointCount == 2)
            #expect(await phone.lineCount >= 2 + 110 / GatewayLimits.small.changeCountMax)
        }
    }

    /// A device whose snapshot is in the middle of a page gets only the rest of the page.
    @Test func lineIsCutAtTheDevicesCheckpoint() async throws {
        try await withGateway { fixture in
            let path = try RealmPath.user("ana@example.com")
            _ = try fill(fixture, try fixture.realm(path), 5)
            let page = try fixture.withDatabase { connection in
                try LivePage.read(
                    in: fixture.environment, after: 0, scannedTo: 0, countMax: 100, names: KindNames(),
                    path: { _ in path },
                    on: &connection)
            }
            let chunk = try #require(page.chunks.first)
            for position in 0...5 {
                let line = chunk.line(above: Int64(position), .device).map { String(buffer: $0) }
                let value = try line.map { try JSONSerialization.jsonObject(with: Data($0.utf8)) }
                let objects = (value as? [String: [String: Any]])?["objects"]?["list"] as? [[String: Any]]
                #expect((objects ?? []).map { $0["position"] as? Int } == Array((position + 1)..<6))
                #expect((line == nil) == (position == 5))
            }
        }
    }

    @Test func cataloguesOpenAndCloseOnALiveStream() async throws {
        try await withGateway { fixture in
            let (own, user) = (try fixture.realm(try .user("ana@example.com")), UUID())
            let (first, second) = (UUID(), UUID())
            for catalogue in [first, second] {
                let realm = try fixture.realm(.catalogue(catalogue))
                try fixture.write { batch in
                    let key = ObjectKey(realm: realm, kind: .reportingTreeNode, id: catalogue)
                    batch.put(key, try CanonicalJSON("{\"name\":\"\(catalogue)\"}"), decision: 0)
                }
            }
            func refer(to catalogue: UUID?) throws {
                let reference = catalogue.map { ",\"catalogue\":\"\($0)\"" } ?? ""
                try fixture.write { batch in
                    let key = ObjectKey(realm: own, kind: .user, id: user)
                    batch.put(
                        key, try CanonicalJSON("{\"email\":\"ana@example.com\",\"name\":\"Ana\"\(reference)}"),
                        decision: 0)
                }
            }
            let phone = try await GatewayDevice(fixture, "ana@example.com")
            let following = Task { try await phone.follow() }
            defer { following.cancel() }
            try await phone.wait("live") { $0.checkpointCount >= 1 }
            try refer(to: first)
            let firstPath = RealmPath.catalogue(first).description
            try await phone.wait("the first catalogue") { $0.shown(firstPath).count == 1 && $0.cursors.count == 3 }
            try refer(to: second)
            let secondPath = RealmPath.catalogue(second).description
            try await phone.wait("the second catalogue") { $0.shown(secondPath).count == 1 && $0.cursors.count == 3 }
            #expect(await phone.closed == [firstPath])
            // The second is followed, the first is not.
            for path in [first, second] {
                let realm = try fixture.realm(.catalogue(path))
                try fixture.write { batch in
                    batch.put(
                        ObjectKey(realm: realm, kind: .reportingTreeNode, id: UUID()), try CanonicalJSON("{}"),
                        decision: 0)
                }
            }
            try await phone.wait("a new node") { $0.shown(secondPath).count == 2 }
            #expect(await phone.shown(firstPath).isEmpty)
            try refer(to: nil)
            try await phone.wait("closed") { $0.closed == [firstPath, secondPath] && $0.cursors.count == 2 }
            #expect(await phone.repeats == [])
        }
    }

    /// A transaction of many pages ends with the revocation of a person's permission: none of its new nodes reaches
    /// them. Others get all of them.
    @Test func transactionThatRevokesAPermissionIsNotSentToThatPerson() async throws {
        try await withGateway(limits: .small) { fixture in
            let (left, other) = (RealmPath.catalogue(UUID()), UUID())
            let catalogue = try fixture.realm(left)
            func user(_ name: String) throws -> ObjectKey {
                ObjectKey(realm: try fixture.realm(try .user("\(name)@example.com")), kind: .user, id: UUID())
            }
            let (ana, ben) = (try user("ana"), try user("ben"))
            try fixture.write { batch in
                for (key, name) in [(ana, "ana"), (ben, "ben")] {
                    let fields =
                        "{\"email\":\"\(name)@example.com\",\"catalogue\":\"\(left.description.dropFirst(12))\"}"
                    batch.put(key, try CanonicalJSON(fields), decision: 0)
                }
            }
            _ = try fill(fixture, catalogue, 1)
            let phones = [
                try await GatewayDevice(fixture, "ana@example.com"),
                try await GatewayDevice(fixture, "ben@example.com"),
            ]
            let following = phones.map { phone in Task { try await phone.follow() } }
            defer { for task in following { task.cancel() } }
            // The first login of one device causes a checkpoint for the other.
            for phone in phones { try await phone.wait("live") { $0.checkpointCount >= 1 } }
            let nodes = (0..<400).map { _ in ObjectKey(realm: catalogue, kind: .reportingTreeNode, id: UUID()) }
            let user = try fixture.object(ana)
            try fixture.write { batch in
                for key in nodes { batch.put(key, try CanonicalJSON("{\"name\":\"new\"}"), decision: 0) }
                try batch.patch(user, CanonicalJSON("{\"catalogue\":\"\(other)\"}"), decision: 0)
            }
            try await phones[1].wait("the new nodes") { $0.shown(left.description).count == 401 }
            try await phones[0].wait("closed") { $0.closed == [left.description] }
            #expect(await phones[0].mostHeld[left.description] == 1)
            #expect(await phones[1].closed.isEmpty)
        }
    }

    @Test func idleStreamGetsKeepalivesAndEndsWithItsToken() async throws {
        var limits = GatewayLimits()
        limits.keepaliveMax = .milliseconds(300)
        try await withGateway(limits: limits) { fixture in
            // The token has expired, but is accepted for the maximum clock difference: the stream ends after that, not
            // before. Otherwise the device would reconnect repeatedly meanwhile.
            let phone = try await GatewayDevice(fixture, "ana@example.com", expiresIn: -30)
            let start = ContinuousClock.now
            try await phone.follow()
            #expect(ContinuousClock.now - start < patienceMax)
            #expect(await phone.keepaliveCount >= 2)
            #expect(await phone.cursors.count == 2)
            let again = GatewayResponse(
                try await fixture.client.send(phone.request("POST", "/v1/sync", "{\"live\":true}")))
            #expect(again.status == 401 && again.problem == "invalid-token", "\(again.body)")
        }
    }

    /// Services and devices write continuously while devices connect, disconnect, resume and follow: at the end every
    /// copy equals the realm, and no device received an object twice.
    @Test(arguments: [262_144, 1], Seeds.random(1, for: "concurrent writes"))
    func copiesConvergeWithoutRepeatsDuringConcurrentWrites(queueBytesMax: Int, seed: UInt64) async throws {
        var limits = GatewayLimits.small
        limits.queueBytesMax = queueBytesMax
        try await withGateway(count: 2, limits: limits) { fixture in
            let (own, catalogue) = (try fixture.realm(try .user("ana@example.com")), UUID())
            let shared = try fixture.realm(.catalogue(catalogue))
            try fixture.write { batch in
                let fields = "{\"email\":\"ana@example.com\",\"name\":\"Ana\",\"catalogue\":\"\(catalogue)\"}"
                batch.put(ObjectKey(realm: own, kind: .user, id: UUID()), try CanonicalJSON(fields), decision: 0)
            }
            _ = try fill(fixture, own, 300)
            var devices: [GatewayDevice] = []
            for number in 0..<6 {
                devices.append(try await GatewayDevice(fixture, "ana@example.com", gateway: number % 2))
            }
            let over = Flag()
            // They reconnect continuously, so that many snapshots are between two of the reader's pages.
            let live = devices[..<3].map { device in
                Task {
                    while !over.isUp { try await device.follow(untilCheckpoints: 3) }
                    try await device.follow()
                }
            }
            for device in devices[..<3] { try await device.wait("live") { $0.checkpointCount > 0 } }
            let writers = (0..<3).map { number in
                Task.detached { try Self.writeAtRandom(fixture, [own, shared], seed: seed &+ UInt64(number)) }
            }
            for round in 0..<8 {
                for device in devices[3...] {
                    if round % 2 == 0 {
                        try await device.sync()
                    } else {
                        try await device.syncInterrupted(afterLines: 3)
                    }
                }
            }
            for writer in writers { try await writer.value }
            over.raise()
            let end = try fixture.withDatabase { connection in
                try EnvironmentCounter(try connection.run(EnvironmentCounter.load(fixture.environment))[0]).position
            }
            for device in devices[3...] { try await device.sync() }
            for device in devices[..<3] { try await device.wait("the end") { $0.checkpoint >= end } }
            for device in devices {
                try await same(fixture, device, "/users/ana@example.com")
                try await same(fixture, device, RealmPath.catalogue(catalogue).description)
                #expect(await device.resets.count == 2)
            }
            for task in live { task.cancel() }
        }
    }

    private static func writeAtRandom(_ fixture: GatewayFixture, _ realms: [Int32], seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        var connection = try Connection(fixture.database)
        var ids: [UUID] = []
        for step in 0..<250 {
            var batch = WriteBatch(environment: fixture.environment)
            var taken: Set<ObjectKey> = []
            for _ in 0..<Int.random(in: 1...4, using: &random) {
                let id =
                    ids.isEmpty || Int.random(in: 0..<3, using: &random) == 0
                    ? UUID() : ids[Int.random(in: 0..<ids.count, using: &random)]
                let key = ObjectKey(realm: realms.randomElement(using: &random) ?? 0, kind: .timeEntry, id: id)
                guard taken.insert(key).inserted else { continue }
                if Int.random(in: 0..<4, using: &random) == 0 {
                    batch.delete(key, decision: 0)
                } else {
                    batch.put(key, try CanonicalJSON("{\"text\":\"\(seed) \(step)\"}"), decision: 0)
                    ids.append(id)
                }
            }
            _ = try batch.commit(on: &connection)
        }
    }
}
