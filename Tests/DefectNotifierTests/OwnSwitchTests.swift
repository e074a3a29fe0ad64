import Compass
import Essentials
import Model
import Postgres
import TestSupport
import Testing

@testable import DefectNotifier
@testable import KeyedWorker

/// An environment's account that comes or goes when not everybody has read the same: whoever lags loses nothing.
@Suite(.ownThreads) struct OwnSwitchTests {
    /// Its rounds begin all the same while an account is refused, or the tracker is away.
    @Test func everybodyGoesOnFromWhereTheAccountStoppedReading() throws {
        var world = try NotifierWorld.withOwnLogins()
        try NotifierWorld.addTracker(to: &world.acme)
        world.tracker.act("Submit", on: "S0", by: "eva", at: world.now, owner: "bo")
        try world.complete()
        for login in ["ana", "bo", "eva"] {
            world.tracker.act("Submit", on: "S-\(login)", by: "stranger", at: world.now + 600, owner: login)
        }
        world.now += 4 * 3_600
        world.tracker.act("Modify", on: "S-ana", by: "stranger", at: world.now)
        try NotifierWorld.addTracker(to: &world.acme, hasAccount: false)
        for login in ["ana", "bo", "eva"] { try world.complete(as: login) }
        #expect(world.expected.count == 4)
        try world.expectNotices()
    }

    /// Rounds are left out at random, of the account and of people, and one takes over from the others all the time.
    @Test func whoeverLagsLosesNothing() throws {
        for seed in Seeds.random(4, for: "laggards") {
            var random = SplitMix64(seed: seed)
            var world = try NotifierWorld.withOwnLogins()
            let people = ["ana", "bo", "eva"]
            try world.completeAll()
            var hasAccount = false
            for _ in 0..<30 {
                world.now += Int.random(in: 60...2_400, using: &random)
                for _ in 0..<Int.random(in: 0...4, using: &random) {
                    let number = Int.random(in: 0..<6, using: &random)
                    let user = Int.random(in: 0..<3, using: &random) == 0 ? people[number % 3] : "stranger"
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
    }

    /// Where the tracker is asked once a day, people come up to a day after the account.
    @Test func peopleOfALongIntervalGoOnFromTheAccountAsWell() throws {
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

    @Test func theAccountCountsForTwoIntervalsAndForTheWindowAtLeast() {
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

    /// An account that has never read leaves nothing to go on from; what one had read months ago is no news.
    @Test func anAccountOfLongAgoIsNotGoneOnFrom() throws {
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

    @Test func anAccountReadsWhatTheLastPersonHasNot() throws {
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
        // From then on it reads from its own, and people from there as well, though it found nothing newer.
        try world.begin()
        guard case (.call(let reading, _), _) = try world.decide(.changes) else {
            Issue.record("nothing is read")
            return
        }
        #expect(reading.since.secondsOfItsClock == WatermarkRule.since(reading.reached))
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
