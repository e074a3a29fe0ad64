import Essentials
import FoundationEssentials
import Model
import TestSupport
import Testing

@testable import NoticeDeliverer

/// The plan of one person's deliveries.
@Suite(.ownThreads) struct DeliveryRuleTests {
    private static var email: DeliveryTarget { .email("ana@example.com") }
    private static var hook: DeliveryTarget? { SecureAddress("https://hooks.example.com/a").map { .webhook($0) } }
    private let now = Timestamp(millisecondsSinceEpoch: 1_780_000_000_000)

    private func notice(_ text: String = "SAMPL1 has changed") -> Notice {
        Notice(about: nil, code: .defectModified, text: text, timestamp: now)
    }

    private func row(
        _ notice: UUID, _ target: DeliveryTarget, due: Int64 = 0, isDigest: Bool = false, attempts: Int = 0,
        next: Int64? = nil
    ) -> ShipmentRow {
        let dueAt = now.adding(.seconds(due))
        return ShipmentRow(
            notice: notice, target: target.id, channel: target.channel, isDigest: isDigest, dueAt: dueAt,
            nextAt: next.map { now.adding(.seconds($0)) } ?? dueAt, attempts: attempts)
    }

    private func deliveries(
        _ rows: [ShipmentRow], _ targets: [DeliveryTarget], outcomes: [(shipment: Shipment, outcome: Outcome)] = [],
        unread: Set<UUID>? = nil, quiet: String? = nil
    ) -> PersonDeliveries {
        let ids = unread ?? Set(rows.map(\.notice))
        return PersonDeliveries(
            now: now, person: "1 ana@example.com", targets: targets, quietHours: quiet.flatMap { QuietHours($0) },
            zone: { _ in 0 }, rows: rows,
            notices: Dictionary(uniqueKeysWithValues: ids.map { ($0, notice()) }), outcomes: outcomes,
            ageMax: .seconds(3_600), retryFirst: .seconds(10), jitter: 1)
    }

    @Test func targetGetsOneShipmentAtATime() throws {
        let (first, second, hook) = (UUID(), UUID(), try #require(Self.hook))
        let rows = [
            row(first, Self.email, due: -5), row(second, Self.email, due: -4), row(first, hook, due: -5),
            row(second, hook, due: -9),
        ]
        let plan = DeliveryRule.plan(deliveries(rows, [hook, Self.email]))
        #expect(plan.shipments.map { $0.items.map(\.id) } == [[second], [first]])
        #expect(plan.changes.isEmpty)
        // The ids are the same at each attempt, and differ by person.
        #expect(
            DeliveryRule.plan(deliveries(rows, [hook, Self.email])).shipments.map(\.id) == plan.shipments.map(\.id))
        #expect(Shipment.id(of: first, to: hook.id, person: "1 bo@example.com") != plan.shipments[0].id)
    }

    /// The backoff of an unavailable target grows with each failure, of any of its notices.
    @Test func backoffGrowsWithEachFailedNotice() {
        var rows = (0..<3).map { row(UUID(), Self.email, due: Int64($0) - 5) }
        for wait in [10, 20, 40, 80, 160] {
            let shipments = DeliveryRule.plan(deliveries(rows, [Self.email])).shipments
            #expect(shipments.count == 1)
            let plan = DeliveryRule.plan(
                deliveries(
                    rows, [Self.email], outcomes: shipments.map { ($0, .retry(reason: "unavailable", after: nil)) }))
            #expect(plan.waitUntil == now.adding(.seconds(wait)), "\(wait)")
            rows = plan.changes.map(\.row).map { changed in
                var changed = changed
                changed.nextAt = now
                return changed
            }
        }
    }

    @Test func failureDelaysAllShipmentsOfTheTarget() throws {
        let (first, second) = (UUID(), UUID())
        var rows = [row(first, Self.email, due: -5), row(second, Self.email, due: -4)]
        let waits: [(retryAfter: Duration?, seconds: Int64)] = [(nil, 10), (nil, 20), (.seconds(100), 100), (nil, 80)]
        for (retryAfter, wait) in waits {
            let shipment = Shipment(
                id: first, target: Self.email, items: [.init(id: first, notice: notice())], isDigest: false,
                expiresAt: now)
            let plan = DeliveryRule.plan(
                deliveries(rows, [Self.email], outcomes: [(shipment, .retry(reason: "unavailable", after: retryAfter))])
            )
            #expect(plan.shipments.isEmpty && plan.waitUntil == now.adding(.seconds(wait)), "\(wait)")
            #expect(plan.changes.map(\.state) == [.waiting, .waiting])
            #expect(plan.changes[1].row.attempts == 0 && plan.changes[0].row.lastError == "unavailable")
            rows = plan.changes.map(\.row).map { changed in
                var changed = changed
                changed.nextAt = now
                return changed
            }
        }
        // The notice with the fewest attempts is next. After its success, the others are sent.
        let next = DeliveryRule.plan(deliveries(rows, [Self.email]))
        #expect(next.shipments.map { $0.items.map(\.id) } == [[second]])
    }

    /// A receiver drops an e-mail whose id it already has.
    @Test func laterPartOfADigestIsAnotherMail() throws {
        let (ids, late) = ((0..<3).map { _ in UUID() }, row(UUID(), Self.email, due: -5, isDigest: true))
        let rows = ids.map { row($0, Self.email, due: -5, isDigest: true) }
        let plan = DeliveryRule.plan(deliveries(rows, [Self.email]))
        let first = try #require(plan.shipments.first)
        #expect(Set(first.items.map(\.id)) == Set(ids) && first.isDigest)
        // The id is saved before the digest is sent. A late notice is not part of it, with either outcome.
        let tried = plan.changes.map(\.row)
        #expect(
            tried.map(\.message) == [first.id, first.id, first.id]
                && plan.changes.map(\.state) == Array(repeating: .waiting, count: 3))
        for outcome in [Outcome.delivered, .retry(reason: "lost", after: nil)] {
            let next = DeliveryRule.plan(deliveries(tried + [late], [Self.email], outcomes: [(first, outcome)]))
            let isDelivered = outcome == .delivered
            #expect(next.shipments.map { $0.items.map(\.id) } == (isDelivered ? [[late.notice]] : []))
            #expect(next.shipments.allSatisfy { $0.id != first.id })
        }
        // After a crash or a failed first attempt, each part is sent separately, and keeps its id if one notice is
        // read.
        var again: [[UUID]: UUID] = [:]
        for rows in [tried, [late], Array(tried.dropFirst())] {
            let shipment = try #require(DeliveryRule.plan(deliveries(rows, [Self.email])).shipments.first)
            again[shipment.items.map(\.id)] = shipment.id
        }
        #expect(again.count == 3 && Set(again.values).count == 2 && again[[late.notice]] != first.id)
        let both = try #require(DeliveryRule.plan(deliveries(tried + [late], [Self.email])).shipments.first)
        #expect(both.items.count == (both.id == first.id ? 3 : 1))
    }

    @Test func recoveredReceiverGetsDelayedShipments() throws {
        let (first, second, third) = (UUID(), UUID(), UUID())
        let rows = [
            row(first, Self.email, due: -5), row(second, Self.email, due: -4, next: 500),
            row(third, Self.email, due: 700, isDigest: true),
        ]
        let shipment = try #require(DeliveryRule.plan(deliveries(rows, [Self.email])).shipments.first)
        let plan = DeliveryRule.plan(deliveries(rows, [Self.email], outcomes: [(shipment, .delivered)]))
        #expect(plan.changes.map(\.state) == [.sent, .waiting])
        #expect(plan.shipments.map { $0.items.map(\.id) } == [[second]], "notices planned for later wait")
        #expect(plan.workingChannels == [.email])
    }

    @Test func rejectedShipmentFailsWithItsReason() throws {
        let (id, hook) = (UUID(), try #require(Self.hook))
        let rows = [row(id, hook), row(id, Self.email)]
        let shipments = DeliveryRule.plan(deliveries(rows, [hook, Self.email])).shipments
        let plan = DeliveryRule.plan(
            deliveries(
                rows, [hook, Self.email],
                outcomes: [
                    (shipments[0], OutcomeRule.ofWebhook(404, retryAfter: nil)), (shipments[1], .delivered),
                ]))
        #expect(plan.changes.map(\.state) == [.failed, .sent])
        #expect(plan.changes[0].row.lastError == "the receiver returned 404")
        #expect(plan.problem == "webhook: the receiver returned 404" && plan.waitUntil == nil)
    }

    @Test func expiredSubscriptionFailsAllItsShipments() throws {
        let browser = DeliveryTarget.push(PushTarget(endpoint: "https://push.example.net/1", p256dh: "", auth: ""))
        let rows = [row(UUID(), browser, due: -2), row(UUID(), browser, due: -1)]
        let shipment = try #require(DeliveryRule.plan(deliveries(rows, [browser])).shipments.first)
        let plan = DeliveryRule.plan(
            deliveries(rows, [browser], outcomes: [(shipment, OutcomeRule.ofPush(410, retryAfter: nil))]))
        #expect(plan.expiredTargets == [browser.id])
        #expect(plan.changes.map(\.state) == [.failed, .failed] && plan.shipments.isEmpty)
    }

    @Test func readUnwantedAndOldNoticesAreNotSent() throws {
        let (read, old, unwanted, hook) = (UUID(), UUID(), UUID(), try #require(Self.hook))
        let rows = [row(read, Self.email), row(old, Self.email, due: -3_600), row(unwanted, hook)]
        let plan = DeliveryRule.plan(deliveries(rows, [Self.email], unread: [old, unwanted]))
        #expect(plan.changes.map(\.state) == [.dropped, .failed, .dropped])
        #expect(plan.shipments.isEmpty && plan.waitUntil == nil)
        #expect(plan.problem == "email: not delivered in time")
    }

    @Test func digestHasAllNoticesOfItsTimeUnderOneID() throws {
        let (ids, late) = ((0..<5).map { _ in UUID() }, UUID())
        let rows =
            ids.map { row($0, Self.email, due: -60, isDigest: true) }
            + [row(late, Self.email, due: 86_340, isDigest: true)]
        let whole = try #require(DeliveryRule.plan(deliveries(rows, [Self.email])).shipments.first)
        #expect(Set(whole.items.map(\.id)) == Set(ids) && whole.isDigest)
        // One notice was read before a repetition: it is the same e-mail with fewer notices.
        let again = try #require(
            DeliveryRule.plan(deliveries(rows, [Self.email], unread: Set(ids.dropFirst() + [late]))).shipments.first)
        #expect(again.id == whole.id && again.items.count == 4)
    }

    @Test func quietHoursSendNothing() throws {
        let id = UUID()
        // 2026-05-28T20:26:40Z.
        let plan = DeliveryRule.plan(deliveries([row(id, Self.email)], [Self.email], quiet: "20:00-21:00"))
        #expect(plan.shipments.isEmpty && plan.waitUntil == Timestamp("2026-05-28T21:00:00Z"))
        #expect(
            DeliveryRule.plan(deliveries([row(id, Self.email)], [Self.email], quiet: "21:00-20:00")).shipments.count
                == 1)
        // Nothing waits: no next step is needed.
        #expect(DeliveryRule.plan(deliveries([], [Self.email], quiet: "20:00-21:00")).waitUntil == nil)
    }

    @Test func backoffGrowsUpToItsLimits() {
        func wait(_ count: Int, retryAfter: Duration? = nil, jitter: Double = 1) -> Duration {
            RetryRule.wait(after: count, first: .seconds(15), retryAfter: retryAfter, jitter: jitter)
        }
        #expect([1, 2, 3].map { wait($0) } == [.seconds(15), .seconds(30), .seconds(60)])
        #expect(wait(1, jitter: 0) == .seconds(7.5) && wait(1_000) == RetryRule.waitMax)
        #expect(wait(1, retryAfter: .seconds(120)) == .seconds(120) && wait(9, retryAfter: .seconds(1)) > .seconds(1))
        #expect(wait(1, retryAfter: .seconds(1_000_000)) == RetryRule.retryAfterMax)
    }

    @Test func statusesMapToOutcomes() {
        for status in [200, 201, 202, 204] { #expect(OutcomeRule.ofWebhook(status, retryAfter: nil) == .delivered) }
        for status in [301, 307, 400, 401, 404, 410, 413] {
            guard case .refused = OutcomeRule.ofWebhook(status, retryAfter: nil) else {
                Issue.record("\(status)")
                continue
            }
        }
        for status in [408, 425, 429, 500, 503] {
            for rule in [OutcomeRule.ofWebhook, OutcomeRule.ofPush] {
                guard case .retry(_, let retryAfter) = rule(status, .seconds(7)) else {
                    Issue.record("\(status)")
                    continue
                }
                #expect(retryAfter == .seconds(7))
            }
        }
        for status in [404, 410] {
            guard case .expired = OutcomeRule.ofPush(status, retryAfter: nil) else {
                Issue.record("\(status)")
                continue
            }
        }
        func mail(_ status: Int?, _ isMailRejection: Bool) -> Bool {
            if case .refused = OutcomeRule.ofMail(status, isMailRejection: isMailRejection, reason: "") {
                true
            } else {
                false
            }
        }
        #expect(mail(550, true) && !mail(550, false) && !mail(451, true) && !mail(nil, true))
    }
}
