import Compass
import Essentials
import Model
import Postgres
import TestSupport
import Testing

@testable import DefectNotifier
@testable import KeyedWorker

/// Switches between an environment's account and own logins while people's watermarks differ: lagging people lose
/// nothing.
@Suite(.ownThreads) struct AccountSwitchTests {
    /// Runs start although an account is refused or the tracker is unavailable.
    @Test func peopleContinueFromTheAccountsLastPoll() throws {
        var world = try NotifierWorld.withOwnLogins()
        try NotifierWorld.addTracker(to: &world.acme)
        world.tracker.act("Submit", on: "S0", by: "eva", at: world.now, owner: "bo")
        try world.complete()
        for login in ["ana", "bo", "eva"] {
            world.tracker.act("Submit", on: "S-\(login)", by: "unlisted", at: world.now + 600, owner: login)
        }
        world.now += 4 * 3_600
        world.tracker.act("Modify", on: "S-ana", by: "unlisted", at: world.now)
        try NotifierWorld.addTracker(to: &world.acme, hasAccount: false)
        for login in ["ana", "bo", "eva"] { try world.complete(as: login) }
        #expect(world.expected.count == 4)
        try world.expectNotices()
    }

    /// Polls of the account and of people are skipped at random, and the environment switches between them.
    @Test(arguments: Seeds.random(4, for: "laggards")) func laggingLoginsLoseNothing(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        var world = try NotifierWorld.withOwnLogins()
        let people = ["ana", "bo", "eva"]
        try world.completeAll()
        var hasAccount = false
        for _ in 0..<30 {
            world.now += Int.random(in: 60...2_400, using: &random)
            for _ in 0..<Int.random(in: 0...4, using: &random) {
                let number = Int.random(in: 0..<6, using: &random)
                let user = Int.random(in: 0..<3, using: &random) == 0 ? people[number % 3] : "unlisted"
                let second = world.now - Int.random(in: 0..<60, using: &random)
                world.tracker.act("Modify", on: "S\(number)", by: user, at: second, owner: people[number % 3])
            }
            if Int.random(in: 0..<4, using: &random) == 0 {
                hasAccount.toggle()
                try NotifierWorld.addTracker(to: &world.acme, hasAccount: hasAccount)
            }
            for login in hasAccount ? [nil] : people.shuffled(using: &random).map(Optional.some)
            where Int.random(in: 0..<3, using: &random) == 0 {
                try world.complete(as: login, crashing: &random)
            }
        }
        try NotifierWorld.addTracker(to: &world.acme, hasAccount: false)
        try world.completeAll()
        try world.expectNotices()
    }

    /// With an interval of a day, people's polls start up to a day after the account's.
    @Test func peopleWithALongIntervalContinueFromTheAccount() throws {
        var world = try NotifierWorld.withOwnLogins()
        try NotifierWorld.addTracker(to: &world.acme)
        try world.complete()
        try NotifierWorld.addTracker(to: &world.acme, hasAccount: false)
        try world.acme.connection.run([
            "UPDATE backend.defect_tracker SET poll_interval_seconds = 86400",
            "UPDATE defect.run SET started_at = now() - interval '47 hours'",
        ])
        world.now += 47 * 3_600
        world.tracker.act("Submit", on: "S1", by: "eva", at: world.now - 3_600, owner: "ana")
        try world.complete(as: "ana")
        #expect(world.expected.count == 1)
        try world.expectNotices()
    }

    @Test func accountCountsForTwoIntervalsAndAtLeastTheWindow() {
        #expect(WatermarkRule.accountSeconds(interval: 5) == 5_400)
        #expect(WatermarkRule.accountSeconds(interval: 2_701) == 5_402)
        #expect(WatermarkRule.accountSeconds(interval: 86_400) == 172_800)
    }

    /// A command requests the next poll of the account, and the account is removed before that poll begins.
    @Test func peopleContinueFromAnAccountWhoseNextPollWasRequested() throws {
        var world = try NotifierWorld.withOwnLogins()
        try NotifierWorld.addTracker(to: &world.acme)
        try world.complete()
        try world.acme.connection.run("UPDATE defect.run SET asked_for = true")
        try NotifierWorld.addTracker(to: &world.acme, hasAccount: false)
        world.now += 600
        world.tracker.act("Submit", on: "S1", by: "eva", at: world.now, owner: "ana")
        try world.complete(as: "ana")
        #expect(world.expected.count == 1)
        try world.expectNotices()
    }

    /// An account that never polled has no watermark to continue from. One that polled months ago does not count.
    @Test func oldAccountWatermarkIsIgnored() throws {
        var world = try NotifierWorld.withOwnLogins()
        try NotifierWorld.addTracker(to: &world.acme)
        try world.complete()
        try NotifierWorld.addTracker(to: &world.acme, hasAccount: false)
        try world.acme.connection.run("UPDATE defect.run SET started_at = now() - interval '91 minutes'")
        world.now += 60 * 86_400
        world.tracker.act("Submit", on: "S1", by: "eva", at: world.now, owner: "ana")
        world.tracker.act("Submit", on: "S2", by: "eva", at: world.now, owner: "bo")
        try world.complete(as: "ana")
        try world.acme.connection.run("UPDATE defect.run SET started_at = now()")
        try world.complete(as: "bo")
        #expect(try world.notices().isEmpty)
    }

    @Test func accountReadsWhatTheLastPersonHasNotRead() throws {
        var world = try NotifierWorld.withOwnLogins()
        try world.completeAll()
        world.tracker.act("Submit", on: "S1", by: "eva", at: world.now + 600, owner: "ana")
        world.now += 4 * 3_600
        world.tracker.act("Submit", on: "S2", by: "eva", at: world.now, owner: "bo")
        try world.complete(as: "bo")
        try NotifierWorld.addTracker(to: &world.acme)
        try world.complete()
        #expect(world.expected.count == 2)
        try world.expectNotices()
        #expect(try world.acme.connection.run("SELECT FROM defect.own_watermark").count == 0)
        // Then the account continues from its own watermark, and so do people, although it found nothing newer.
        try world.startPoll()
        guard case (.call(let request, _), _) = try world.decide(.changes) else {
            Issue.record("no page is requested")
            return
        }
        #expect(request.since.clockSeconds == WatermarkRule.since(request.watermarkMin))
        try NotifierWorld.addTracker(to: &world.acme, hasAccount: false)
        world.now += 300
        for login in ["ana", "bo"] {
            world.tracker.act("Modify", on: login == "ana" ? "S1" : "S2", by: "eva", at: world.now, owner: login)
        }
        try world.completeAll()
        #expect(world.expected.count == 4)
        try world.expectNotices()
    }
}
