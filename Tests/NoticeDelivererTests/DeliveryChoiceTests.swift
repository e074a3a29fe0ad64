import Essentials
import FoundationEssentials
import HTTPClient
import LocalCluster
import Model
import Tenants
import TestSupport
import Testing

@testable import NoticeDeliverer

/// People's choices, and the limits of their environment.
@Suite(.ownThreads) struct DeliveryChoiceTests {
    @Test func personWithoutChoiceGetsNothing() async throws {
        var world = try DeliveryWorld()
        try world.notify("one")
        try world.choose(DeliveryChoice())
        try world.notify("two")
        #expect(try await world.settle().wait == nil)
        #expect(try world.ledger().isEmpty && world.receivers.received().isEmpty)
    }

    /// No connection is made for any spelling of the address, so that the result does not disclose listening ports.
    @Test(arguments: ["127.0.0.1", "localhost"])
    func privateAddressIsRejectedUnlessAllowed(host: String) async throws {
        var world = try DeliveryWorld { $0.allowsPrivate = false }
        let hook = world.receivers.webURL.replacing("127.0.0.1", with: host) + "/hook"
        var browser = world.browser()
        browser.endpoint = browser.endpoint.replacing("127.0.0.1", with: host)
        try world.choose(DeliveryChoice(webhook: hook, pushes: [browser]))
        try world.notify("one")
        #expect(try await world.settle().wait == nil)
        let reason = "the address is not public; connections to private addresses are not allowed"
        #expect(try world.ledger() == ["push failed 1 \(reason)", "webhook failed 1 \(reason)"])
        #expect(try world.choice()?.problem?.hasSuffix(reason) == true)
        #expect(try world.receivers.received().isEmpty)
    }

    /// Addresses that people choose are public, even if the environment's own hosts are private.
    @Test func privatePushServiceIsAllowedOnlyOnNamedHosts() async throws {
        var world = try DeliveryWorld { $0.webhookHosts = ["hooks.example.com"] }
        try world.choose(DeliveryChoice(pushes: [world.browser()]))
        try world.notify("one")
        #expect(try await world.settle().wait == nil)
        #expect(try world.ledger().map { $0.hasPrefix("push failed 1 the address is not public") } == [true])
        #expect(try world.receivers.received().isEmpty)
    }

    @Test func redirectIsNotFollowed() async throws {
        var world = try DeliveryWorld()
        let to = world.receivers.webURL + "/hook/elsewhere"
        try world.choose(DeliveryChoice(webhook: world.receivers.webURL + "/hook?status=307&to=\(to)"))
        try world.notify("one")
        #expect(try await world.settle().wait == nil)
        #expect(try world.ledger() == ["webhook failed 1 the receiver returned 307"])
        #expect(try world.receivers.received().count == 1)
    }

    @Test func onlyNamedHostsAreCalled() async throws {
        var world = try DeliveryWorld { $0.webhookHosts = ["hooks.example.com"] }
        try world.choose(DeliveryChoice(webhook: world.receivers.webURL + "/hook"))
        try world.notify("one")
        #expect(try await world.settle().wait == nil)
        #expect(try world.ledger().isEmpty && world.receivers.received().isEmpty)
        #expect(try world.choice()?.problem == "choice: webhooks to 127.0.0.1 are not allowed in this environment")
    }

    @Test func unavailableChannelIsReported() async throws {
        var world = try DeliveryWorld { $0.mailServer = nil }
        try world.choose(DeliveryChoice(email: true, timeZone: "Europe/Nowhere"))
        try world.notify("one")
        try await world.settle()
        #expect(try world.choice()?.problem == "choice: e-mail is not available in this environment")
        try world.choose(DeliveryChoice(timeZone: "Europe/Nowhere"))
        try world.notify("two")
        try await world.settle()
        #expect(
            try world.choice()?.problem == "choice: unknown time zone Europe/Nowhere; UTC is used")
    }

    /// Notices that wait for a removed address are not sent, nor to the new one.
    @Test func changedChoiceAppliesImmediately() async throws {
        var world = try DeliveryWorld()
        try world.choose(DeliveryChoice(webhook: world.receivers.webURL + "/hook?status=503"))
        try world.notify("one")
        try await world.settle()
        try world.choose(DeliveryChoice(webhook: world.receivers.webURL + "/hook"))
        world.time.pass(.seconds(60))
        #expect(try await world.settle().wait == nil)
        #expect(try world.receivers.received().map(\.status) == [503])
        #expect(try world.ledger() == ["webhook dropped 1 the receiver returned 503"])
    }

    @Test func digestIsOneMailAtItsTime() async throws {
        var world = try DeliveryWorld()
        // An hour and a half from now, by a clock 5:45 ahead of UTC.
        let at = world.time.now.adding(.seconds(5_400 + 20_700)).description.dropFirst(11).prefix(5)
        let url = world.receivers.webURL
        try world.choose(
            DeliveryChoice(
                webhook: url + "/hook", email: true, digestAt: String(at), timeZone: "Asia/Kathmandu"))
        for text in ["one", "two", "three"] { try world.notify(text) }
        let read = try world.notify("four")
        let (wait, _) = try await world.settle()
        #expect(wait == .seconds(600), "the choice is processed again before")
        #expect(try world.receivers.received().map(\.kind) == ["webhook", "webhook", "webhook", "webhook"])
        try world.notify("four", isRead: true, id: read)
        world.time.pass(.seconds(5_400))
        #expect(try await world.step().sent.map(\.items.count) == [3])
        try world.crash()
        #expect(try await world.settle().wait == nil)
        let mails = try world.receivers.received().filter { $0.kind == "mail" }.map(\.text)
        #expect(mails.count == 2 && mails.allSatisfy { $0.contains("Subject: 3 notices\r\n") })
        let ids = mails.map { $0.split(separator: "\r\n").first { $0.hasPrefix("Message-ID:") } }
        #expect(ids[0] != nil && ids[0] == ids[1])
        for text in ["one", "two", "three"] { #expect(mails[0].contains(" UTC  \(text)\r\n")) }
        // A later notice is part of the next day's digest.
        try world.notify("five")
        world.time.pass(.seconds(3_600))
        #expect(try await world.settle().wait == .seconds(600))
        #expect(try world.receivers.received().count { $0.kind == "mail" } == 2)
    }

    /// An excluded code is not sent at once nor with a digest; a code that a later version added is.
    @Test(arguments: [false, true]) func excludedNoticeIsNotSent(isDigest: Bool) async throws {
        var world = try DeliveryWorld()
        let at = world.time.now.adding(.seconds(3_600)).description.dropFirst(11).prefix(5)
        try world.choose(
            DeliveryChoice(
                email: true, digestAt: isDigest ? String(at) : nil, excludedCodes: [.taskChanged, .itemShared]))
        try world.notify("alpha", .taskChanged)
        try world.notify("bravo", .taskAssigned)
        try world.notify("charlie", .itemShared)
        try world.notify("delta", Notice.Code(rawValue: "of-later"))
        try await world.settle()
        world.time.pass(.seconds(3_600))
        #expect(try await world.settle().wait == nil)
        #expect(try world.ledger() == ["email sent 0", "email sent 0"])
        let text = try world.receivers.received().map(\.text).joined()
        let sent = ["alpha", "bravo", "charlie", "delta"].map { text.contains($0) }
        #expect(sent == [false, true, false, true])
        #expect(try world.choice()?.problem == nil)
    }

    /// The person excludes a code while its notice waits for the end of the quiet hours.
    @Test func waitingNoticeIsDroppedWhenExcluded() async throws {
        var world = try DeliveryWorld()
        let text = { (time: Timestamp) in String(time.description.dropFirst(11).prefix(5)) }
        let hours = text(world.time.now) + "-" + text(world.time.now.adding(.seconds(300)))
        try world.choose(DeliveryChoice(email: true, quietHours: hours))
        try world.notify("one", .taskOverdue)
        try world.notify("two", .entryRejected)
        try await world.settle()
        try world.choose(DeliveryChoice(email: true, quietHours: hours, excludedCodes: [.taskOverdue]))
        world.time.pass(.seconds(300))
        #expect(try await world.settle().wait == nil)
        #expect(try world.ledger() == ["email dropped 0", "email sent 0"])
        let mails = try world.receivers.received().map(\.text)
        #expect(mails.count == 1 && mails.first?.contains("two") == true)
    }

    @Test func quietHoursDeferDeliveries() async throws {
        var world = try DeliveryWorld()
        let text = { (time: Timestamp) in String(time.description.dropFirst(11).prefix(5)) }
        let hours = text(world.time.now) + "-" + text(world.time.now.adding(.seconds(300)))
        try world.choose(DeliveryChoice(email: true, quietHours: hours))
        try world.notify("one")
        let wait = try #require(try await world.settle().wait)
        #expect(wait <= .seconds(300) && wait > .seconds(239))
        #expect(try world.receivers.received().isEmpty)
        world.time.pass(wait)
        #expect(try await world.settle().wait == nil)
        #expect(try world.receivers.received().map(\.kind) == ["mail"])
    }
}
