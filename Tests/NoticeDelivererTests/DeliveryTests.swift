import Essentials
import FoundationEssentials
import HTTPClient
import LocalCluster
import Model
import Tenants
import TestSupport
import Testing

@testable import NoticeDeliverer

/// Deliveries to a real mail server, a webhook receiver and a push service.
@Suite(.ownThreads) struct DeliveryTests {
    /// Returns the ids of messages: `webhook-id`, `Message-ID` or `Topic`.
    private func ids(_ received: [NoticeReceivers.Received]) -> [String: [String]] {
        Dictionary(grouping: received, by: \.kind).mapValues { all in
            all.map { one in
                one.headers["webhook-id"] ?? one.headers["topic"]
                    ?? one.text.split(separator: "\r\n").first { $0.hasPrefix("Message-ID:") }.map(String.init) ?? ""
            }
        }
    }

    @Test func noticeIsDeliveredByAllChannels() async throws {
        var world = try DeliveryWorld()
        try world.choose(
            DeliveryChoice(
                webhook: world.receivers.webURL + "/hook?of=ana", email: true, pushes: [world.browser()]))
        let id = try world.notify("SAMPL1 (Zähler) has been modified")
        #expect(try world.ledger() == ["email waiting 0", "push waiting 0", "webhook waiting 0"])
        #expect(try world.parked() == ["/users/ana@example.com/DeliveryChoice/\(world.person.text)"])
        #expect(try await world.settle().wait == nil)
        #expect(try world.ledger() == ["email sent 0", "push sent 0", "webhook sent 0"])
        let received = try world.receivers.received()
        #expect(Set(received.map(\.kind)) == ["webhook", "mail", "push"], "\(received)")
        let hook = try #require(received.first { $0.kind == "webhook" })
        #expect(hook.path == "/hook?of=ana" && hook.headers["content-type"] == "application/json")
        #expect(hook.text.contains("\"id\":\"\(id.text)\"") && hook.text.contains("SAMPL1 (Zähler)"))
        let push = try #require(received.first { $0.kind == "push" })
        #expect(push.text.contains("SAMPL1 (Zähler)") && push.headers["ttl"].flatMap { Int($0) } ?? 0 > 3_000)
        #expect(push.headers["topic"]?.utf8.count == 22)
        #expect(push.claims?.contains("\"aud\": \"\(world.receivers.webURL)\"") == true, "\(push.claims ?? "")")
        #expect(push.claims?.contains("mailto:it@example.com") == true)
        let mail = try #require(received.first { $0.kind == "mail" })
        #expect(mail.path == "ana@example.com" && mail.isTLS == true && mail.login == "fieldpost")
        #expect(mail.text.contains("SAMPL1 (Z=C3=A4hler) has been modified"))
        // The same event again, and an edit, insert no rows.
        try world.handle(id)
        try await world.settle()
        #expect(try world.receivers.received().count == 3)
    }

    /// The event of an old notice is published again: its waiting rows keep their own time limit.
    @Test func eventOfOldNoticeDropsNothing() async throws {
        var world = try DeliveryWorld { $0.mailServer = "smtps://127.0.0.1:9" }
        try world.choose(DeliveryChoice(email: true))
        let id = try world.notify("one")
        world.time.pass(.seconds(3_601))
        try world.handle(id)
        #expect(try world.ledger() == ["email waiting 0"])
    }

    @Test func resendAfterACrashKeepsTheID() async throws {
        var world = try DeliveryWorld()
        try world.choose(
            DeliveryChoice(webhook: world.receivers.webURL + "/hook", email: true, pushes: [world.browser()]))
        for text in ["one", "two"] { try world.notify(text) }
        for _ in 0..<3 {
            #expect(try await world.step().sent.count == 3)
            try world.crash()
        }
        try await world.settle()
        let ids = ids(try world.receivers.received())
        #expect(Set(ids.keys) == ["webhook", "mail", "push"])
        for (kind, ids) in ids {
            #expect(ids.count == 5 && Set(ids).count == 2 && Set(ids.prefix(4)).count == 1, "\(kind): \(ids)")
        }
        let bodies = Set(try world.receivers.received().filter { $0.kind == "webhook" }.map(\.text))
        #expect(bodies.count == 2, "a repetition is identical to the byte")
    }

    @Test func failedDeliveryIsRetriedAfterRetryAfter() async throws {
        var world = try DeliveryWorld(email: "busy@example.com")
        try world.choose(
            DeliveryChoice(
                webhook: world.receivers.webURL + "/hook?status=503&times=2&retry=120", email: true,
                pushes: [world.browser("/push?status=429&times=1&retry=60")]))
        try world.notify("one")
        let (wait, reason) = try await world.settle()
        #expect(try #require(wait) <= .seconds(15) && reason != nil, "\(wait.map { "\($0)" } ?? "")")
        #expect(
            try world.ledger()
                == [
                    "email waiting 1 the mail server: DATA failed: 451", "push waiting 1 the push service returned 429",
                    "webhook waiting 1 the receiver returned 503",
                ].sorted() || world.ledger().contains { $0.hasPrefix("email waiting 1 the mail server:") })
        world.time.pass(.seconds(15))
        try await world.settle()
        #expect(
            try world.ledger().map { $0.split(separator: " ").prefix(3).joined(separator: " ") } == [
                "email sent 1", "push waiting 1", "webhook waiting 1",
            ])
        world.time.pass(.seconds(45))
        try await world.settle()
        world.time.pass(.seconds(60))
        try await world.settle()
        #expect(
            try world.ledger().map { $0.split(separator: " ").prefix(3).joined(separator: " ") } == [
                "email sent 1", "push sent 1", "webhook waiting 2",
            ])
        world.time.pass(.seconds(120))
        try await world.settle()
        let ids = ids(try world.receivers.received())
        #expect(ids["webhook"]?.count == 3 && Set(ids["webhook"] ?? []).count == 1)
        #expect(ids["mail"]?.count == 2 && Set(ids["mail"] ?? []).count == 1)
        #expect(ids["push"]?.count == 2 && Set(ids["push"] ?? []).count == 1)
    }

    @Test func rejectionIsReportedUntilTheChannelWorks() async throws {
        var world = try DeliveryWorld()
        let address = world.receivers.webURL + "/hook?status=404&times=1"
        try world.choose(DeliveryChoice(webhook: address))
        try world.notify("one")
        #expect(try await world.settle().wait == nil)
        #expect(try world.ledger() == ["webhook failed 1 the receiver returned 404"])
        #expect(try world.choice() == DeliveryChoice(webhook: address, problem: "webhook: the receiver returned 404"))
        try world.notify("two")
        try await world.settle()
        #expect(try world.choice()?.problem == nil)
    }

    @Test func rejectedRecipientIsGivenUp() async throws {
        var world = try DeliveryWorld(email: "nobody@example.com")
        try world.choose(DeliveryChoice(email: true))
        try world.notify("one")
        #expect(try await world.settle().wait == nil)
        #expect(try world.ledger().first?.hasPrefix("email failed 1 the mail server rejected it: ") == true)
        #expect(try world.choice()?.problem?.hasPrefix("email: the mail server rejected it: ") == true)
    }

    @Test(arguments: [404, 410]) func expiredSubscriptionIsRemoved(status: Int) async throws {
        var world = try DeliveryWorld()
        let (expired, current) = (world.browser("/push?status=\(status)"), world.browser("/push"))
        try world.choose(DeliveryChoice(email: true, pushes: [expired, current]))
        try world.notify("one")
        try await world.settle()
        let choice = try #require(try world.choice())
        #expect(choice.pushes == [current] && choice.email)
        #expect(choice.problem == "push: the browser has ended its subscription (\(status))")
        try world.notify("two")
        try await world.settle()
        #expect(try world.receivers.received().count { $0.path != "/push" && $0.kind == "push" } == 1)
        #expect(try world.receivers.received().count { $0.path == "/push" } == 2)
    }

    @Test func readOrDeletedNoticeIsNotSent() async throws {
        var world = try DeliveryWorld()
        try world.choose(DeliveryChoice(webhook: world.receivers.webURL + "/hook", email: true))
        let (read, deleted) = (try world.notify("read"), try world.notify("deleted"))
        try world.notify("was read at once", isRead: true)
        try world.notify("read", isRead: true, id: read)
        try world.delete(deleted)
        #expect(try await world.settle().wait == nil)
        #expect(try world.receivers.received().isEmpty)
        #expect(Set(try world.ledger()) == ["email dropped 0", "webhook dropped 0"])
    }

    @Test func noticeOlderThanAgeMaxIsGivenUp() async throws {
        var world = try DeliveryWorld { $0.mailServer = "smtp://127.0.0.1:9" }
        try world.choose(DeliveryChoice(email: true))
        try world.notify("one")
        for _ in 0..<3 {
            #expect(try await world.settle().wait != nil)
            world.time.pass(.seconds(1_000))
        }
        world.time.pass(.seconds(1_000))
        #expect(try await world.settle().wait == nil)
        #expect(try world.ledger().first?.hasPrefix("email failed 3 not delivered in time: the mail server: ") == true)
    }
}
