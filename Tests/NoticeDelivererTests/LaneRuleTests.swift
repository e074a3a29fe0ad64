import Essentials
import FoundationEssentials
import Model
import Testing

@testable import NoticeDeliverer

/// What is sent to one person, and what becomes of it.
@Suite struct LaneRuleTests {
    private static var email: Target { .email("ana@example.com") }
    private static var hook: Target? { SecureAddress("https://hooks.example.com/a").map { .webhook($0) } }
    private let now = Timestamp(millisecondsSinceEpoch: 1_780_000_000_000)

    private func notice(_ text: String = "SAMPL1 has changed") -> Notice {
        Notice(about: nil, code: .defectModified, text: text, timestamp: now)
    }

    private func row(
        _ notice: UUID, _ target: Target, due: Int64 = 0, isDigest: Bool = false, attempts: Int = 0, next: Int64? = nil
    ) -> WaitingRow {
        let dueAt = now.adding(.seconds(due))
        return WaitingRow(
            notice: notice, target: target.id, way: target.way, isDigest: isDigest, dueAt: dueAt,
            nextAt: next.map { now.adding(.seconds($0)) } ?? dueAt, attempts: attempts)
    }

    private func lane(
        _ rows: [WaitingRow], _ targets: [Target], outcomes: [(shipment: Shipment, outcome: Outcome)] = [],
        unread: Set<UUID>? = nil, quiet: String? = nil
    ) -> Lane {
        let ids = unread ?? Set(rows.map(\.notice))
        return Lane(
            now: now, person: "1 ana@example.com", targets: targets, quietHours: quiet.flatMap { QuietHours($0) },
            zone: { _ in 0 }, rows: rows,
            notices: Dictionary(uniqueKeysWithValues: ids.map { ($0, notice()) }), outcomes: outcomes,
            ageMax: .seconds(3_600), retryFirst: .seconds(10), chance: 1)
    }

    @Test func eachTargetIsSentOneThingAtATime() throws {
        let (first, second, hook) = (UUID(), UUID(), try #require(Self.hook))
        let rows = [
            row(first, Self.email, due: -5), row(second, Self.email, due: -4), row(first, hook, due: -5),
            row(second, hook, due: -9),
        ]
        let plan = LaneRule.plan(lane(rows, [hook, Self.email]))
        #expect(plan.shipments.map { $0.items.map(\.id) } == [[second], [first]])
        #expect(plan.changes.isEmpty)
        // However often it is asked, the ids are the same; another person's are others.
        #expect(LaneRule.plan(lane(rows, [hook, Self.email])).shipments.map(\.id) == plan.shipments.map(\.id))
        #expect(Shipment.id(of: first, to: hook.id, person: "1 bo@example.com") != plan.shipments[0].id)
    }

    /// Whichever of its notices is tried, a target that is away is asked less and less often.
    @Test func theWaitGrowsWithEachNoticeThatFails() {
        var rows = (0..<3).map { row(UUID(), Self.email, due: Int64($0) - 5) }
        for wait in [10, 20, 40, 80, 160] {
            let shipments = LaneRule.plan(lane(rows, [Self.email])).shipments
            #expect(shipments.count == 1)
            let plan = LaneRule.plan(
                lane(rows, [Self.email], outcomes: shipments.map { ($0, .retry(reason: "away", after: nil)) }))
            #expect(plan.waitUntil == now.adding(.seconds(wait)), "\(wait)")
            rows = plan.changes.map(\.row).map { changed in
                var changed = changed
                changed.nextAt = now
                return changed
            }
        }
    }

    @Test func whatFailedWaitsLongerEachTimeAndTheTargetsOthersWithIt() throws {
        let (first, second) = (UUID(), UUID())
        var rows = [row(first, Self.email, due: -5), row(second, Self.email, due: -4)]
        let waits: [(asked: Duration?, seconds: Int64)] = [(nil, 10), (nil, 20), (.seconds(100), 100), (nil, 80)]
        for (asked, wait) in waits {
            let shipment = Shipment(
                id: first, target: Self.email, items: [.init(id: first, notice: notice())], isDigest: false,
                expiresAt: now)
            let plan = LaneRule.plan(
                lane(rows, [Self.email], outcomes: [(shipment, .retry(reason: "away", after: asked))]))
            #expect(plan.shipments.isEmpty && plan.waitUntil == now.adding(.seconds(wait)), "\(wait)")
            #expect(plan.changes.map(\.state) == [.waiting, .waiting])
            #expect(plan.changes[1].row.attempts == 0 && plan.changes[0].row.lastError == "away")
            rows = plan.changes.map(\.row).map { changed in
                var changed = changed
                changed.nextAt = now
                return changed
            }
        }
        // What was tried least is next; when it goes, so do the others.
        let next = LaneRule.plan(lane(rows, [Self.email]))
        #expect(next.shipments.map { $0.items.map(\.id) } == [[second]])
    }

    /// Who has one e-mail takes another one of the same id for the same, and drops it.
    @Test func anotherPartOfADigestIsAnotherEMail() throws {
        let (ids, late) = ((0..<3).map { _ in UUID() }, row(UUID(), Self.email, due: -5, isDigest: true))
        let rows = ids.map { row($0, Self.email, due: -5, isDigest: true) }
        let plan = LaneRule.plan(lane(rows, [Self.email]))
        let first = try #require(plan.shipments.first)
        #expect(Set(first.items.map(\.id)) == Set(ids) && first.isDigest)
        // It is known by its id before it is sent. What comes late is no part of it, whatever came of it.
        let tried = plan.changes.map(\.row)
        #expect(
            tried.map(\.message) == [first.id, first.id, first.id]
                && plan.changes.map(\.state) == Array(repeating: .waiting, count: 3))
        for outcome in [Outcome.delivered, .retry(reason: "lost", after: nil)] {
            let next = LaneRule.plan(lane(tried + [late], [Self.email], outcomes: [(first, outcome)]))
            let isDelivered = outcome == .delivered
            #expect(next.shipments.map { $0.items.map(\.id) } == (isDelivered ? [[late.notice]] : []))
            #expect(next.shipments.allSatisfy { $0.id != first.id })
        }
        // The process ended, or the first try failed: each part is sent by itself, and keeps its id when one is read.
        var again: [[UUID]: UUID] = [:]
        for rows in [tried, [late], Array(tried.dropFirst())] {
            let shipment = try #require(LaneRule.plan(lane(rows, [Self.email])).shipments.first)
            again[shipment.items.map(\.id)] = shipment.id
        }
        #expect(again.count == 3 && Set(again.values).count == 2 && again[[late.notice]] != first.id)
        let both = try #require(LaneRule.plan(lane(tried + [late], [Self.email])).shipments.first)
        #expect(both.items.count == (both.id == first.id ? 3 : 1))
    }

    @Test func aReceiverThatWorksAgainGetsWhatWaitedForIt() throws {
        let (first, second, third) = (UUID(), UUID(), UUID())
        let rows = [
            row(first, Self.email, due: -5), row(second, Self.email, due: -4, next: 500),
            row(third, Self.email, due: 700, isDigest: true),
        ]
        let shipment = try #require(LaneRule.plan(lane(rows, [Self.email])).shipments.first)
        let plan = LaneRule.plan(lane(rows, [Self.email], outcomes: [(shipment, .delivered)]))
        #expect(plan.changes.map(\.state) == [.sent, .waiting])
        #expect(plan.shipments.map { $0.items.map(\.id) } == [[second]], "and what is planned for later waits")
        #expect(plan.workingWays == [.email])
    }

    @Test func whatIsRefusedIsGivenUpWithItsReason() throws {
        let (id, hook) = (UUID(), try #require(Self.hook))
        let rows = [row(id, hook), row(id, Self.email)]
        let shipments = LaneRule.plan(lane(rows, [hook, Self.email])).shipments
        let plan = LaneRule.plan(
            lane(
                rows, [hook, Self.email],
                outcomes: [
                    (shipments[0], OutcomeRule.ofWebhook(404, retryAfter: nil)), (shipments[1], .delivered),
                ]))
        #expect(plan.changes.map(\.state) == [.failed, .sent])
        #expect(plan.changes[0].row.lastError == "the receiver answers 404")
        #expect(plan.problem == "webhook: the receiver answers 404" && plan.waitUntil == nil)
    }

    @Test func aBrowserThatIsGoneIsForgottenWithAllThatWaitsForIt() throws {
        let browser = Target.push(PushTarget(endpoint: "https://push.example.net/1", p256dh: "", auth: ""))
        let rows = [row(UUID(), browser, due: -2), row(UUID(), browser, due: -1)]
        let shipment = try #require(LaneRule.plan(lane(rows, [browser])).shipments.first)
        let plan = LaneRule.plan(
            lane(rows, [browser], outcomes: [(shipment, OutcomeRule.ofPush(410, retryAfter: nil))]))
        #expect(plan.goneEndpoints == ["https://push.example.net/1"])
        #expect(plan.changes.map(\.state) == [.failed, .failed] && plan.shipments.isEmpty)
    }

    @Test func whatWasReadOrIsNotWantedOrIsOldIsNotSent() throws {
        let (read, old, unwanted, hook) = (UUID(), UUID(), UUID(), try #require(Self.hook))
        let rows = [row(read, Self.email), row(old, Self.email, due: -3_600), row(unwanted, hook)]
        let plan = LaneRule.plan(lane(rows, [Self.email], unread: [old, unwanted]))
        #expect(plan.changes.map(\.state) == [.dropped, .failed, .dropped])
        #expect(plan.shipments.isEmpty && plan.waitUntil == nil)
        #expect(plan.problem == "email: not delivered in time")
    }

    @Test func aDigestIsAllThatIsDueAtOnceUnderOneID() throws {
        let (ids, late) = ((0..<5).map { _ in UUID() }, UUID())
        let rows =
            ids.map { row($0, Self.email, due: -60, isDigest: true) }
            + [row(late, Self.email, due: 86_340, isDigest: true)]
        let whole = try #require(LaneRule.plan(lane(rows, [Self.email])).shipments.first)
        #expect(Set(whole.items.map(\.id)) == Set(ids) && whole.isDigest)
        // One was read before it is sent again: it is the same e-mail, with less in it.
        let again = try #require(
            LaneRule.plan(lane(rows, [Self.email], unread: Set(ids.dropFirst() + [late]))).shipments.first)
        #expect(again.id == whole.id && again.items.count == 4)
    }

    @Test func nothingIsSentInQuietHours() throws {
        let id = UUID()
        // 2026-05-28T20:26:40Z.
        let plan = LaneRule.plan(lane([row(id, Self.email)], [Self.email], quiet: "20:00-21:00"))
        #expect(plan.shipments.isEmpty && plan.waitUntil == Timestamp("2026-05-28T21:00:00Z"))
        #expect(LaneRule.plan(lane([row(id, Self.email)], [Self.email], quiet: "21:00-20:00")).shipments.count == 1)
        // Nothing waits: nobody is to be woken.
        #expect(LaneRule.plan(lane([], [Self.email], quiet: "20:00-21:00")).waitUntil == nil)
    }

    @Test func waitsGrowAndAreBounded() {
        func wait(_ count: Int, asked: Duration? = nil, chance: Double = 1) -> Duration {
            RetryRule.wait(after: count, first: .seconds(15), asked: asked, chance: chance)
        }
        #expect([1, 2, 3].map { wait($0) } == [.seconds(15), .seconds(30), .seconds(60)])
        #expect(wait(1, chance: 0) == .seconds(7.5) && wait(1_000) == RetryRule.waitMax)
        #expect(wait(1, asked: .seconds(120)) == .seconds(120) && wait(9, asked: .seconds(1)) > .seconds(1))
        #expect(wait(1, asked: .seconds(1_000_000)) == RetryRule.askedMax)
    }

    @Test func answersSayWhatBecomesOfAShipment() {
        for status in [200, 201, 202, 204] { #expect(OutcomeRule.ofWebhook(status, retryAfter: nil) == .delivered) }
        for status in [301, 307, 400, 401, 404, 410, 413] {
            guard case .refused = OutcomeRule.ofWebhook(status, retryAfter: nil) else {
                Issue.record("\(status)")
                continue
            }
        }
        for status in [408, 425, 429, 500, 503] {
            for rule in [OutcomeRule.ofWebhook, OutcomeRule.ofPush] {
                guard case .retry(_, let asked) = rule(status, .seconds(7)) else {
                    Issue.record("\(status)")
                    continue
                }
                #expect(asked == .seconds(7))
            }
        }
        for status in [404, 410] {
            guard case .gone = OutcomeRule.ofPush(status, retryAfter: nil) else {
                Issue.record("\(status)")
                continue
            }
        }
        func mail(_ status: Int?, _ isAboutMail: Bool) -> Bool {
            if case .refused = OutcomeRule.ofMail(status, isAboutMail: isAboutMail, reason: "") { true } else { false }
        }
        #expect(mail(550, true) && !mail(550, false) && !mail(451, true) && !mail(nil, true))
    }
}
