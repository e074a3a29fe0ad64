import Essentials
import Model
import TestSupport
import Testing

@testable import DefectNotifier

/// Polls with people's own logins under injected faults, from seeds: the notices match those of reference readers that
/// read the whole history, each for one person.
@Suite(.ownThreads) struct OwnLoginSimulationTests {
    @Test(arguments: Seeds.random(4, for: "own")) func crashesNeitherLoseNorRepeatNotices(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        var world = try NotifierWorld.withOwnLogins()
        world.tracker.pageRowsMax = [1, 3, 500].randomElement(using: &random) ?? 3
        try world.completeAll()
        for _ in 0..<25 {
            Self.advance(&world, &random)
            try world.completeAll(crashing: &random)
            try NotifierSimulationTests.disturb(&world, &random)
        }
        try Self.verify(&world, &random, seed)
    }

    /// The environment gains and loses its account. Polls of both kinds account for what the other has processed.
    @Test(arguments: Seeds.random(4, for: "switches"))
    func switchingAccountsNeitherLosesNorRepeatsNotices(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        var world = try NotifierWorld.withOwnLogins()
        world.tracker.pageRowsMax = [1, 3, 500].randomElement(using: &random) ?? 3
        var hasAccount = Bool.random(using: &random)
        try NotifierWorld.addTracker(to: &world.acme, hasAccount: hasAccount)
        if hasAccount { try world.complete() } else { try world.completeAll() }
        for _ in 0..<25 {
            Self.advance(&world, &random)
            if Int.random(in: 0..<3, using: &random) == 0 {
                hasAccount.toggle()
                try NotifierWorld.addTracker(to: &world.acme, hasAccount: hasAccount)
            }
            if hasAccount {
                try world.complete(crashing: &random)
            } else {
                try world.completeAll(crashing: &random)
            }
        }
        try NotifierWorld.addTracker(to: &world.acme, hasAccount: false)
        try Self.verify(&world, &random, seed)
    }

    /// Advances the time and adds actions. All owners have a login.
    private static func advance(_ world: inout NotifierWorld, _ random: inout SplitMix64) {
        world.now += Int.random(in: 60...900, using: &random)
        world.tracker.offset = 7_200 + Int.random(in: -600...600, using: &random)
        for _ in 0..<Int.random(in: 0...4, using: &random) {
            let record = "S\(Int.random(in: 0..<6, using: &random))"
            let user = NotifierSimulationTests.logins.randomElement(using: &random) ?? ""
            let action = ["Submit", "Assign", "Modify", "Resolve"].randomElement(using: &random) ?? "Modify"
            let isNew = world.tracker.records[record] == nil
            let owner = isNew || Bool.random(using: &random) ? ["ana", "bo", "eva"].randomElement(using: &random) : nil
            world.tracker.act(
                action, on: record, by: user, at: world.now - Int.random(in: 0..<60, using: &random), owner: owner,
                late: Int.random(in: 0...3, using: &random) == 0 ? Int.random(in: 60...660, using: &random) : 0)
        }
    }

    /// Makes late rows visible and checks notices and mirrors.
    private static func verify(_ world: inout NotifierWorld, _ random: inout SplitMix64, _ seed: UInt64) throws {
        for _ in 0..<4 {
            world.now += 300
            try world.completeAll(crashing: &random)
        }
        #expect(world.expected.count > 10, "seed \(seed)")
        try world.expectNotices()
        #expect(try world.mirrors() == world.expectedMirrors, "history polls only, seed \(seed)")
        try world.completeAll(.comparison, crashing: &random)
        #expect(try world.mirrors() == world.expectedMirrors, "seed \(seed)")
    }
}
