import Essentials
import Foundation
import HTTPClient
import LocalCluster
import Model
import ObjectStore
import Postgres
import PowerSyncModel
import TestSupport
import Testing

@testable import RealmGateway

/// Errors that clients of the PowerSync protocol do not report, and requests with invalid buckets.
@Suite(.ownThreads) struct BucketTrapTests {
    private static let own = "/users/ana@example.com"
    private func same(_ fixture: GatewayFixture, _ device: BucketDevice, _ realms: String...) async throws {
        for realm in realms {
            let (shown, stored) = (try await device.shown(realm), try fixture.stored(realm))
            #expect(shown == stored, "\(realm): \(shown.count) shown, \(stored.count) stored")
        }
        #expect(await device.broken == [])
    }

    private func fill(_ fixture: GatewayFixture, _ count: Int) throws -> [ObjectKey] {
        let realm = try fixture.realm(try .user("ana@example.com"))
        let keys = (0..<count).map { _ in ObjectKey(realm: realm, kind: .timeEntry, id: UUID()) }
        try fixture.write { batch in
            for key in keys { batch.put(key, try CanonicalJSON("{\"text\":\"x\"}"), decision: 0) }
        }
        return keys
    }

    /// A realm that is reset has only operations that the device may have already: they are displayed after a CLEAR.
    @Test func positionBelowTheFloorClearsTheBucket() async throws {
        try await withGateway(limits: .small) { fixture in
            let keys = try fill(fixture, 20)
            let device = try await BucketDevice(fixture, "ana@example.com")
            try await device.sync()
            try fixture.write { batch in for key in keys[..<10] { batch.delete(key, decision: 0) } }
            try fixture.withDatabase { connection in
                let outcome = try Compaction.step(
                    fixture.environment, keep: .seconds(-60), countMax: 1000, on: &connection)
                try #require(outcome != .locked)
            }
            try await device.sync()
            try await same(fixture, device, Self.own)
        }
    }

    @Test func realmsOpenAndCloseOnALiveStream() async throws {
        try await withGateway(limits: .small) { fixture in
            _ = try fill(fixture, 3)
            let device = try await BucketDevice(fixture, "ana@example.com")
            try await device.sync()
            let (me, team, task) = (try fixture.person("ana@example.com"), UUID(), UUID())
            let path = RealmPath.team(team).description
            try fixture.makeTeam(team)
            // One id in two realms is two rows.
            for realm in [RealmPath.team(team), .manager] {
                try fixture.put(.fieldTask, task, "{\"title\":\"\(realm)\"}", in: realm)
            }
            let following = Task { try await device.follow { _, _ in false } }
            try fixture.add(me, to: team)
            try await device.wait("the team") { (try? $0.shown(path).count) == 1 }
            try fixture.set(.manager, of: "ana@example.com")
            try await device.wait("the manager's realm") { (try? $0.shown("/manager").count) == 1 }
            try await same(fixture, device, path, "/manager", Self.own)
            try fixture.remove(me, from: team)
            try fixture.set(.worker, of: "ana@example.com")
            try await device.wait("closed") { !$0.model.rows.keys.contains { $0.type == "FieldTask" } }
            try fixture.add(me, to: team)
            try await device.wait("the team again") { (try? $0.shown(path).count) == 1 }
            following.cancel()
            _ = await following.result
            try await same(fixture, device, path, Self.own)
            // Absent when the permission ends: the bucket is in no checkpoint.
            try fixture.remove(me, from: team)
            try await device.sync()
            #expect(try await device.shown(path).isEmpty)
            #expect(await device.broken == [])
        }
    }

    /// Changes an object and waits until the device displays it.
    private func change(_ key: ObjectKey, _ fixture: GatewayFixture, _ device: BucketDevice) async throws {
        try fixture.write { $0.put(key, try CanonicalJSON("{\"text\":\"changed\"}"), decision: 0) }
        try await device.wait("the change") { device in
            device.model.rows.contains { $0.key.id.hasPrefix(key.id.text) && $0.value.contains("changed") }
        }
    }

    /// For a client, a checkpoint without the number means that there is none.
    @Test func everyCheckpointHasTheNumber() async throws {
        try await withGateway(limits: .small) { fixture in
            let keys = try fill(fixture, 3)
            let device = try await BucketDevice(fixture, "ana@example.com")
            try await device.sync()
            let number = try await device.uploaded()
            let count = await device.lines.count
            let following = Task { try await device.follow { _, _ in false } }
            try await device.wait("the first checkpoint") { $0.model.writeCheckpoint == number }
            for key in keys { try await change(key, fixture, device) }
            following.cancel()
            _ = await following.result
            let checkpoints = await device.lines[count...].filter {
                $0.hasPrefix("{\"checkpoint\":") || $0.contains("_diff")
            }
            #expect(checkpoints.count >= 4)
            #expect(checkpoints.allSatisfy { $0.contains("\"write_checkpoint\":\"\(number)\"") })
            try await same(fixture, device, Self.own)
        }
    }

    @Test func bucketsThatAClientMayNotHaveAreIgnored() async throws {
        try await withGateway(limits: .small) { fixture in
            _ = try fill(fixture, 30)
            try fixture.put(.fieldTask, UUID(), "{\"title\":\"secret\"}", in: .manager)
            for own in ["9000000000000000000", "-5", "x", "", "1"] {
                let device = try await BucketDevice(fixture, "ana@example.com")
                try await device.sync(buckets: [
                    ["name": "1:\(Self.own)", "after": own], ["name": "1:/manager", "after": "1"],
                    ["name": "1:/users/bo@example.com", "after": "1"], ["name": "1:", "after": "1"],
                    ["name": "0:\(Self.own)", "after": "1"], ["name": "nonsense", "after": "1"],
                    ["name": "1:/sent/ana@example.com", "after": "0"],
                ])
                #expect(await device.model.names.isDisjoint(with: ["1:/manager", "1:/users/bo@example.com"]))
                // A position that exists is believed.
                if own != "1" { try await same(fixture, device, Self.own) }
                #expect(await !device.lines.contains { $0.contains("secret") || $0.contains("/sent/") })
            }
        }
    }

    @Test func threeThousandBucketsAreAllowed() async throws {
        try await withGateway(limits: .small) { fixture in
            _ = try fill(fixture, 3)
            let device = try await BucketDevice(fixture, "ana@example.com")
            let buckets = (0..<3_001).map { _ in
                ["name": "1:/teams/\(UUID().text)", "after": "9000000000000000000"]
            }
            try await device.sync(buckets: Array(buckets.dropFirst()))
            try await same(fixture, device, Self.own)
            let body = try JSONSerialization.data(withJSONObject: ["buckets": buckets])
            let response = try await fixture.client.send(
                device.request("POST", "/sync/stream", text: String(decoding: body, as: UTF8.self)))
            #expect(response.status == 400)
            #expect(String(decoding: response.body, as: UTF8.self).contains("3000 buckets"))
        }
    }

    @Test(arguments: [
        "", "[]", "{\"buckets\":1}", "{\"buckets\":[{\"name\":\"x\"}]}", "{\"streams\":{\"subscriptions\":[{}]}}",
        "{\"streams\":1}",
    ])
    func malformedRequestIsRejected(body: String) async throws {
        try await withGateway(limits: .small) { fixture in
            let device = try await BucketDevice(fixture, "ana@example.com")
            let response = try await fixture.client.send(device.request("POST", "/sync/stream", text: body))
            #expect(response.status == 400)
            #expect(response.headers["Content-Type"] == "application/problem+json")
        }
    }

    /// Parameters of another form are an error of their subscription only.
    @Test func subscriptionsOfOtherFormsAreErrors() async throws {
        try await withGateway(limits: .small) { fixture in
            let device = try await BucketDevice(fixture, "ana@example.com")
            let forms = ["{\"path\":1}", "{}", "null", "[]", "{\"path\":\"/nowhere\\\"\"}"]
            let list = forms.map { "{\"stream\":\"realm\",\"parameters\":\($0)}" }.joined(separator: ",")
            let response = try await fixture.client.stream(
                device.request("POST", "/sync/stream", text: "{\"streams\":{\"subscriptions\":[\(list)]}}"))
            for try await line in response.body.lines(bytesMax: 1 << 20) {
                var model = BucketModel()
                try model.apply(line)
                #expect(model.refused["realm"] == [0, 1, 2, 3, 4])
                break
            }
        }
    }

    /// The stream ends with the token, and has a line at least in each interval until then.
    @Test func idleStreamHasTokenLinesAndEndsWithItsToken() async throws {
        var limits = GatewayLimits()
        limits.keepaliveMax = .milliseconds(200)
        try await withGateway(limits: limits) { fixture in
            let device = try await BucketDevice(fixture, "ana@example.com", expiresIn: -56)
            try await device.follow { _, _ in false }
            let lines = await device.lines.filter { $0.hasPrefix("{\"token_expires_in\":") }
            #expect(lines.count >= 2)
            #expect(await device.model.tokenExpiresIn.map { $0 <= 10 } == true)
            let again = try await fixture.client.send(device.request("POST", "/sync/stream", text: "{}"))
            #expect(again.status == 401)
        }
    }

    /// Only 401 makes a client request credentials, and with them the new address.
    @Test func movedEnvironmentIsUnauthorized() async throws {
        try await withGateway(limits: .small) { fixture in
            let device = try await BucketDevice(fixture, "ana@example.com")
            try await device.sync()
            try fixture.withDatabase { connection in
                _ = try connection.run(
                    """
                    INSERT INTO realm.move (environment_id, move_id, state, moved_to)
                    VALUES (1, gen_random_uuid(), 'left', 'https://other.example.com')
                    """)
            }
            let client = device.clientID.text
            try await eventually("the stream is refused") {
                try await fixture.client.send(device.request("POST", "/sync/stream", text: "{}")).status == 401
            }
            let number = try await fixture.client.send(
                device.request("GET", "/write-checkpoint2.json?client_id=\(client)", text: nil))
            #expect(number.status == 401)
            let upload = try await fixture.client.send(
                device.request("POST", "/v1/uploads", text: "{\"clientId\":\"\(client)\",\"entries\":[]}"))
            #expect(upload.status == 421 && String(decoding: upload.body, as: UTF8.self).contains("other.example.com"))
        }
    }

    @Test(arguments: [(nil, false), ("gzip, deflate", true), ("gzip;q=0", false)] as [(String?, Bool)])
    func streamIsCompressedForClientsThatAcceptIt(accepted: String?, isCompressed: Bool) async throws {
        try await withGateway(limits: .small) { fixture in
            let device = try await BucketDevice(fixture, "ana@example.com")
            var request = device.request("POST", "/sync/stream", text: "{}")
            if let accepted { request.headers.append(("Accept-Encoding", accepted)) }
            let response = try await fixture.client.stream(request)
            #expect(response.headers["Content-Encoding"] == (isCompressed ? "gzip" : nil))
            #expect(response.headers["X-Accel-Buffering"] == "no")
            for try await chunk in response.body {
                #expect(chunk.first == (isCompressed ? 0x1F : UInt8(ascii: "{")))
                break
            }
        }
    }
}
