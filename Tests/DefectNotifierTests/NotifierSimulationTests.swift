import Essentials
import Model
import TestSupport
import Testing

@testable import DefectNotifier

/// The notifier under injected faults, from seeds: the notices match those of a reference reader of the history.
@Suite(.ownThreads) struct NotifierSimulationTests {
    /// Faults: crashes between any two steps, repeated polls, clocks ten minutes wrong either way, rows that become
    /// visible after rows that were written later, and people who delete and read notices.
    @Test(arguments: Seeds.random(6, for: "notifier")) func crashesNeitherLoseNorRepeatNotices(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        var world = try NotifierWorld()
        world.tracker.pageRowsMax = [1, 3, 500].randomElement(using: &random) ?? 3
        try world.complete()
        for _ in 0..<40 {
            world.now += Int.random(in: 60...900, using: &random)
            // The clock is set to another error, and runs on from there.
            world.tracker.offset = 7_200 + Int.random(in: -600...600, using: &random)
            for _ in 0..<Int.random(in: 0...4, using: &random) { Self.act(&world, &random) }
            try world.complete(crashing: &random)
            try Self.disturb(&world, &random)
        }
        // Late rows become visible.
        for _ in 0..<4 {
            world.now += 300
            try world.complete(crashing: &random)
        }
        try world.expectNotices()
        try world.complete(.comparison, crashing: &random)
        #expect(try world.mirrors() == world.expectedMirrors, "seed \(seed)")
    }

    static let logins = ["ana", "bo", "eva", "unlisted"]

    static func act(_ world: inout NotifierWorld, _ random: inout SplitMix64) {
        let record = "S\(Int.random(in: 0..<6, using: &random))"
        let (user, owner) = (logins.randomElement(using: &random) ?? "", logins.randomElement(using: &random))
        let action = ["Submit", "Assign", "Modify", "Resolve"].randomElement(using: &random) ?? "Modify"
        // Within the next poll's time; some rows become visible later.
        let second = world.now - Int.random(in: 0..<60, using: &random)
        world.tracker.act(
            action, on: record, by: user, at: second, owner: Bool.random(using: &random) ? owner : nil,
            late: Int.random(in: 0...3, using: &random) == 0 ? Int.random(in: 60...660, using: &random) : 0)
    }

    /// Deletes or reads a notice, or starts a comparison.
    static func disturb(_ world: inout NotifierWorld, _ random: inout SplitMix64) throws {
        let live = try world.notices().filter { $0.value != nil }.keys.sorted { $0.id.text < $1.id.text }
        guard let notice = live.randomElement(using: &random) else { return }
        switch Int.random(in: 0..<6, using: &random) {
        case 0: try world.write(notice, nil)
        case 1: try world.startPoll(.comparison)
        default: break
        }
    }

    /// In autumn clocks are set back: the second hour's rows have earlier times than the first hour's.
    @Test(arguments: [0, 600, -600]) func repeatedAutumnHourIsNotifiedOnce(skew: Int) throws {
        // 2026-10-25 01:00 UTC: 03:00 becomes 02:00 in Europe.
        let change = 1_792_890_000
        var world = try NotifierWorld(now: change - 7_200)
        world.tracker.offset = 7_200 + skew
        world.tracker.act("Submit", on: "S1", by: "bo", at: world.now, owner: "ana")
        try world.complete()
        for minute in stride(from: 5, through: 300, by: 5) {
            world.now = change - 7_200 + minute * 60
            world.tracker.offset = (world.now < change ? 7_200 : 3_600) + skew
            world.tracker.act("Modify", on: "S\(minute % 7)", by: "bo", at: world.now - minute % 60, owner: "ana")
            try world.complete()
        }
        #expect(world.expected.count == 60)
        try world.expectNotices()
        #expect(try world.noticeWriteCount() == 60)
    }

    @Test func springClockChangeLosesNoNotice() throws {
        let change = 1_774_746_000
        var world = try NotifierWorld(now: change - 3_600)
        world.tracker.offset = 3_600
        try world.complete()
        for minute in stride(from: 5, through: 180, by: 5) {
            world.now = change - 3_600 + minute * 60
            world.tracker.offset = world.now < change ? 3_600 : 7_200
            world.tracker.act("Modify", on: "S1", by: "bo", at: world.now, owner: "ana")
            try world.complete()
        }
        #expect(world.expected.count == 36)
        try world.expectNotices()
    }

    /// A bulk change, read in pages, with a worker that crashes repeatedly.
    @Test func bulkChangeOfTwoThousandSurvivesCrashes() throws {
        let people = Dictionary(uniqueKeysWithValues: (0..<50).map { ("p\($0)", "p\($0)@example.com") })
        var random = SplitMix64(seed: 7)
        var world = try NotifierWorld(people: people)
        try world.complete()
        for number in 0..<2_000 {
            world.tracker.act(
                number % 3 == 0 ? "Assign" : "Modify", on: "S\(number)", by: "boss", at: world.now + number % 240,
                owner: "p\(number % 50)")
        }
        world.now += 300
        let pageCount = world.tracker.pageCount
        try world.complete(crashing: &random, oneIn: 3)
        #expect(world.expected.count == 2_000)
        try world.expectNotices()
        #expect(try world.noticeWriteCount() == 2_000)
        #expect(world.tracker.pageCount > pageCount + 5, "it was interrupted")
        #expect(try world.mirrors() == world.expectedMirrors)
    }

    /// No poll runs for a day.
    @Test func changesOfADayWithoutPollsAreNotified() throws {
        var random = SplitMix64(seed: 11)
        var world = try NotifierWorld()
        try world.complete()
        for hour in 0..<24 {
            world.now += 3_600
            world.tracker.act("Modify", on: "S\(hour)", by: "bo", at: world.now, owner: "ana")
        }
        world.tracker.pageRowsMax = 5
        try world.complete(crashing: &random, oneIn: 3)
        #expect(world.expected.count == 24)
        try world.expectNotices()
    }
}
