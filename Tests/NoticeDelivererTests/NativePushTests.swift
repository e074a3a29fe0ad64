import Essentials
import Foundation
import LocalCluster
import Model
import Tenants
import TestSupport
import Testing

@testable import NoticeDeliverer

/// Deliveries to emulators of APNs, which speaks only HTTP/2, and of FCM.
@Suite(.ownThreads) struct NativePushTests {
    private static let apple = String(repeating: "a1", count: 32)
    private static let google = "fcm:APA91b-Z_1"

    private func json(_ text: String) throws -> [String: Any] {
        try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
    }

    /// The `waiting 1`, `sent 0`, … of the only row.
    private func state(_ world: inout DeliveryWorld) throws -> String {
        try #require(try world.ledger().first).split(separator: " ").dropFirst().prefix(2).joined(separator: " ")
    }

    @Test func noticeIsDeliveredToDevices() async throws {
        var world = try DeliveryWorld()
        let devices = [try world.device(.apns, Self.apple), try world.device(.fcm, Self.google)]
        try world.choose(DeliveryChoice(devices: devices))
        let id = try world.notify("SAMPL1 (Zähler) has been modified")
        #expect(try await world.settle().wait == nil)
        #expect(try world.ledger() == ["apns sent 0", "fcm sent 0"])
        let received = try world.receivers.received()
        #expect(received.map(\.kind).sorted() == ["apns", "fcm", "oauth"], "\(received)")
        let time = world.time.now
        let reference = ["id": id.text, "code": "defect-modified", "timestamp": time.description]
        let apple = try #require(received.first { $0.kind == "apns" })
        #expect(apple.path == Self.apple && apple.headers["apns-topic"] == NoticeReceivers.topic)
        let sent = try json(apple.text)
        #expect(sent.keys.sorted() == ["aps", "notice"] && sent["notice"] as? [String: String] == reference)
        let alert = (sent["aps"] as? [String: Any])?["alert"] as? [String: String]
        #expect(alert == ["body": "SAMPL1 (Zähler) has been modified"])
        let expiry = try #require(apple.headers["apns-expiration"].flatMap { Int64($0) })
        #expect(expiry == time.adding(.seconds(3_600)).millisecondsSinceEpoch / 1_000)
        let google = try #require(received.first { $0.kind == "fcm" })
        let message = try #require(try json(google.text)["message"] as? [String: Any])
        var data = try #require(message["data"] as? [String: String])
        let removed = data.removeValue(forKey: "collapseId")
        let collapse = try #require(removed)
        #expect(data == reference.merging(["text": "SAMPL1 (Zähler) has been modified"]) { $1 })
        #expect(message["token"] as? String == Self.google)
        let headers = (message["apns"] as? [String: Any])?["headers"] as? [String: String]
        #expect(headers?["apns-collapse-id"] == collapse && collapse != apple.headers["apns-collapse-id"])
    }

    // MARK: The sender's tokens

    @Test func providerTokenIsReusedUntilItsReplacement() async throws {
        var world = try DeliveryWorld()
        try world.choose(DeliveryChoice(devices: [try world.device(.apns, Self.apple)]))
        for pause in [Duration.zero, .seconds(2_399), .seconds(1)] {
            world.time.pass(pause)
            try world.notify("one")
            try await world.settle()
        }
        let received = try world.receivers.received()
        #expect(received.map(\.status) == [200, 200, 200])
        #expect(received[0].claims == received[1].claims && received[1].claims != received[2].claims)
    }

    /// The clocks differ, or APNs has become stricter.
    @Test func expiredProviderTokenIsReplaced() async throws {
        var world = try DeliveryWorld()
        try world.choose(DeliveryChoice(devices: [try world.device(.apns, Self.apple)]))
        try world.notify("one")
        try await world.settle()
        world.time.pass(.seconds(1_300))
        let now = world.time.now.millisecondsSinceEpoch / 1_000
        try world.receivers.set(.init(apnsIssuedAfter: now - 60))
        try world.notify("two")
        #expect(try await world.settle().wait == nil)
        #expect(try world.receivers.received().map(\.status) == [200, 403, 200])
        // APNs rejects another token so soon: the notice waits.
        try world.receivers.set(.init(apnsIssuedAfter: now + 60))
        try world.notify("three")
        #expect(try await world.settle().wait != nil)
        #expect(try world.ledger().last == "apns waiting 1 APNs returned 403 ExpiredProviderToken")
        world.time.pass(.seconds(1_300))
        #expect(try await world.settle().wait == nil)
        #expect(try world.receivers.received().map(\.status) == [200, 403, 200, 403, 403, 200])
    }

    /// An operator can correct the key, so no notice is given up, and no device is removed.
    @Test func wrongKeyDelaysNotices() async throws {
        var world = try DeliveryWorld { $0.apns?.team = "OTHERTEAM1" }
        let choice = DeliveryChoice(devices: [try world.device(.apns, Self.apple)])
        try world.choose(choice)
        try world.notify("one")
        #expect(try await world.settle().wait != nil)
        #expect(try world.ledger() == ["apns waiting 1 APNs returned 403 InvalidProviderToken"])
        #expect(try world.choice() == choice)
    }

    @Test func accessTokenIsSharedAndReplaced() async throws {
        var world = try DeliveryWorld()
        var devices: [DeviceTarget] = []
        for number in 0..<8 { devices.append(try world.device(.fcm, "\(Self.google)\(number)")) }
        try world.choose(DeliveryChoice(devices: devices))
        let receivers = world.receivers
        func kinds() throws -> [String: Int] {
            Dictionary(grouping: try receivers.received(), by: { "\($0.kind) \($0.status)" }).mapValues(\.count)
        }
        try world.notify("one")
        try await world.settle()
        #expect(try kinds() == ["oauth 200": 1, "fcm 200": 8], "one request for all concurrent deliveries")
        world.time.pass(.seconds(3_400))
        try world.notify("two")
        try await world.settle()
        #expect(try kinds() == ["oauth 200": 2, "fcm 200": 16])
        // Google revokes the token.
        try world.receivers.set(.init(fcmRevokedCount: 2))
        try world.notify("three")
        #expect(try await world.settle().wait == nil)
        let counts = try kinds()
        #expect(counts["oauth 200"] == 3 && counts["fcm 200"] == 24 && (1...8).contains(counts["fcm 401"] ?? 0))
    }

    // MARK: Failures

    @Test(arguments: [
        (DeviceTarget.Service.apns, 410, "Unregistered"), (.apns, 410, "ExpiredToken"), (.apns, 400, "BadDeviceToken"),
        (.fcm, 404, "UNREGISTERED"), (.fcm, 403, "SENDER_ID_MISMATCH"), (.fcm, 400, "INVALID_ARGUMENT"),
    ])
    func unregisteredDeviceIsRemoved(service: DeviceTarget.Service, status: Int, reason: String) async throws {
        var world = try DeliveryWorld()
        let token = service == .apns ? Self.apple : Self.google
        let other = service == .apns ? String(Self.apple.reversed()) : Self.google + "2"
        let devices = [try world.device(service, token), try world.device(service, other)]
        try world.choose(DeliveryChoice(devices: devices))
        try world.receivers.set(.init([token: [.status(status, reason)]]))
        try world.notify("one")
        #expect(try await world.settle().wait == nil)
        let choice = try #require(try world.choice())
        #expect(choice.devices == [devices[1]])
        #expect(choice.problem?.hasPrefix("\(service): ") == true && choice.problem?.contains(reason) == true)
        try world.notify("two")
        #expect(try await world.settle().wait == nil)
        #expect(try world.choice()?.problem == nil, "the service works for another device")
        #expect(try world.receivers.received().count { $0.path == token } == 1)
        #expect(try world.receivers.received().count { $0.path == other } == 2)
    }

    /// The delay of the vendor, and the resulting one.
    private static let delays: [(DeviceTarget.Service, Int, String, Int?, Int)] = [
        (.apns, 429, "TooManyRequests", 120, 120), (.apns, 503, "ServiceUnavailable", 90, 90),
        (.apns, 500, "InternalServerError", nil, 15), (.fcm, 429, "QUOTA_EXCEEDED", 120, 120),
        (.fcm, 429, "QUOTA_EXCEEDED", nil, 60), (.fcm, 503, "UNAVAILABLE", 90, 90), (.fcm, 500, "INTERNAL", nil, 15),
    ]

    @Test(arguments: delays)
    func unavailableServiceIsRetriedAfterRetryAfter(
        service: DeviceTarget.Service, status: Int, reason: String, retryAfter: Int?, seconds: Int
    ) async throws {
        var world = try DeliveryWorld()
        let token = service == .apns ? Self.apple : Self.google
        try world.choose(DeliveryChoice(devices: [try world.device(service, token)]))
        try world.receivers.set(.init([token: [.status(status, reason, retryAfter: retryAfter)]]))
        try world.notify("one")
        let wait = try #require(try await world.settle().wait)
        #expect(retryAfter == nil && seconds == 15 ? wait <= .seconds(15) : wait == .seconds(seconds), "\(wait)")
        #expect(try state(&world) == "waiting 1")
        world.time.pass(.seconds(seconds))
        #expect(try await world.settle().wait == nil)
        let received = try world.receivers.received().filter { $0.kind != "oauth" }
        #expect(received.map(\.status) == [status, 200])
        #expect(Set(received.map { $0.headers["apns-collapse-id"] }).count == 1)
    }

    @Test func unavailableTokenServerIsRetried() async throws {
        var world = try DeliveryWorld()
        try world.choose(DeliveryChoice(devices: [try world.device(.fcm, Self.google)]))
        try world.receivers.set(
            .init(["oauth": [.status(503, "temporarily_unavailable", retryAfter: 40), .status(400, "invalid_grant")]]))
        try world.notify("one")
        #expect(try await world.settle().wait == .seconds(40))
        #expect(try world.ledger() == ["fcm waiting 1 no access token for FCM: 503 temporarily_unavailable"])
        world.time.pass(.seconds(40))
        #expect(try await world.settle().wait != nil)
        #expect(try world.ledger() == ["fcm waiting 2 no access token for FCM: 400 invalid_grant"])
        world.time.pass(.seconds(60))
        #expect(try await world.settle().wait == nil)
        #expect(try world.ledger() == ["fcm sent 2 no access token for FCM: 400 invalid_grant"])
    }

    /// Neither a lost response nor a crash before the result is recorded changes the collapse id.
    @Test func resendKeepsTheCollapseID() async throws {
        var world = try DeliveryWorld()
        let devices = [try world.device(.apns, Self.apple), try world.device(.fcm, Self.google)]
        try world.choose(DeliveryChoice(devices: devices))
        try world.receivers.set(.init([Self.apple: [.none, .none, .drop], Self.google: [.none, .none, .drop]]))
        for text in ["one", "two"] { try world.notify(text) }
        for _ in 0..<2 {
            #expect(try await world.step().sent.count == 2)
            try world.crash()
        }
        #expect(try await world.settle().wait != nil)
        world.time.pass(.seconds(15))
        #expect(try await world.settle().wait == nil)
        #expect(Set(try world.ledger().map { $0.split(separator: " ")[1] }) == ["sent"])
        let received = try world.receivers.received()
        let apple = received.filter { $0.kind == "apns" }.map { $0.headers["apns-collapse-id"] ?? "" }
        let google = try received.filter { $0.kind == "fcm" }.map { one in
            let message = try #require(try json(one.text)["message"] as? [String: Any])
            return try #require((message["data"] as? [String: String])?["collapseId"])
        }
        for ids in [apple, google] {
            #expect(ids.count == 5 && Set(ids).count == 2 && Set(ids.prefix(3)).count == 1, "\(ids)")
        }
    }

    // MARK: Content

    /// A message of more than 4,096 bytes would be rejected.
    @Test(arguments: ["ä", "\"", "\u{1F469}\u{200D}\u{1F4BB}", "\\"])
    func longTextIsTruncated(letter: String) async throws {
        var world = try DeliveryWorld()
        let devices = [
            try world.device(.apns, Self.apple), try world.device(.fcm, String(repeating: "t", count: 2_048)),
        ]
        try world.choose(DeliveryChoice(devices: devices))
        try world.notify(String(repeating: letter, count: 5_000))
        #expect(try await world.settle().wait == nil)
        #expect(try world.ledger() == ["apns sent 0", "fcm sent 0"])
        let received = try world.receivers.received().filter { $0.kind != "oauth" }
        #expect(received.allSatisfy { $0.text.contains("\(letter == "ä" ? "ä" : "")…\"") && $0.status == 200 })
        #expect(received.allSatisfy { $0.text.utf8.count > 2_000 }, "no more is cut than necessary")
    }

    @Test func readOrDeletedNoticeIsNotSent() async throws {
        var world = try DeliveryWorld()
        try world.choose(DeliveryChoice(devices: [try world.device(.apns, Self.apple)]))
        let (read, deleted) = (try world.notify("read"), try world.notify("deleted"))
        try world.notify("read", isRead: true, id: read)
        try world.delete(deleted)
        #expect(try await world.settle().wait == nil)
        #expect(try world.receivers.received().isEmpty)
    }

    @Test func excludedNoticeIsNotSent() async throws {
        var world = try DeliveryWorld()
        let devices = [try world.device(.apns, Self.apple), try world.device(.fcm, Self.google)]
        try world.choose(DeliveryChoice(devices: devices, excludedCodes: [.taskChanged]))
        try world.notify("excluded", .taskChanged)
        try world.notify("chosen", .taskAssigned)
        #expect(try await world.settle().wait == nil)
        #expect(try world.ledger() == ["apns sent 0", "fcm sent 0"])
        let sent = try world.receivers.received().filter { $0.kind != "oauth" }.map(\.text)
        #expect(sent.count == 2 && sent.allSatisfy { $0.contains("chosen") })
    }

    /// The servers are the environment's: an operator can allow their addresses, so no notice is given up.
    @Test func privateServerDelaysNotices() async throws {
        var world = try DeliveryWorld { $0.allowsPrivate = false }
        let choice = DeliveryChoice(devices: [try world.device(.apns, Self.apple), try world.device(.fcm, Self.google)])
        try world.choose(choice)
        try world.notify("one")
        #expect(try await world.settle().wait != nil)
        let reason = "the address is not public; connections to private addresses are not allowed"
        #expect(
            try world.ledger() == [
                "apns waiting 1 \(reason)", "fcm waiting 1 no access token for FCM: \(reason)",
            ])
        #expect(try world.choice() == choice && world.receivers.received().isEmpty)
    }

    @Test func serviceThatIsNotOfferedIsReported() async throws {
        var world = try DeliveryWorld { $0.fcm = nil }
        try world.choose(DeliveryChoice(devices: [try world.device(.fcm, Self.google)]))
        try world.notify("one")
        try await world.settle()
        #expect(try world.ledger().isEmpty)
        #expect(try world.choice()?.problem == "choice: fcm is not available in this environment")
    }
}
