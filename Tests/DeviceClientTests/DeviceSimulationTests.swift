import Essentials
import TestSupport
import Testing

/// One device against a naive server in random steps: lines are cut anywhere, requests and answers are lost, late and
/// repeated, the device is killed and goes on from what it stored, the database is compacted and restored, a realm is
/// lost and gained.
///
/// After every line:
/// 1. at a checkpoint, the copy is exactly what the server held at its position;
/// 2. between checkpoints nothing else is shown than before, but for a realm that was closed.
///
/// After every step:
/// 3. what the person did to their own objects is shown (until a restore, of which the device may not know yet).
///
/// At rest:
/// 4. every mutation was decided once and in order, those that a restore had lost too;
/// 5. the device was told of each what the server decided;
/// 6. the device holds the realms that the person may open, and shows them as the server holds them;
/// 7. it comes to rest at all: when nothing goes wrong any more, there is soon nothing left to do.
///
/// And 8: what was stored is read as it was.
///
/// It must also fail: ``Mistake`` is the list of mistakes that it finds. Three more it found in the library itself:
/// - a restore lost the last answer only: asked for, it was decided anew, and nobody was told (5);
/// - as before, but that answer was lost too, and something else was sent next (5);
/// - what was rejected before a restore and accepted after it was not shown until its checkpoint, but once the device
///   was read again.
@Suite struct DeviceSimulationTests {
    /// Steps of one phone, and between two rests.
    private static let stepCount = 1_000
    private static let activeCount = 125
    private static let phoneCount = 25

    @Test(arguments: Seeds.random(8, for: "device")) func thePhoneShowsWhatIsTrue(seed: UInt64) throws {
        let counts = try run(seed)
        for (what, least) in [
            ("rests", 200), ("checkpoints", 2_000), ("gaps", 10), ("restores", 20), ("compactions", 50),
            ("kills", 200), ("states written and read", 10), ("late answers", 20), ("permissions", 200), ("cuts", 300),
            ("own mutations refused", 100), ("last answers lost", 50),
        ] {
            #expect(counts[what, default: 0] >= least, "seed \(seed): \(what)")
        }
    }

    @Test(arguments: Mistake.allCases) func aMistakeIsFound(mistake: Mistake) throws {
        let seed = try #require(Self.mistakeSeeds.first)
        let violation = #expect(throws: Violation.self, "seed \(seed)") { try run(seed, mistake: mistake) }
        guard let violation else { return }
        #expect(violation.law.map(mistake.laws.contains) == true, "\(violation)")
    }

    private static let mistakeSeeds = Seeds.random(1, for: "device with a mistake")

    /// - Returns: How often what happened.
    @discardableResult
    private func run(_ seed: UInt64, mistake: Mistake? = nil) throws -> [String: Int] {
        var random = SplitMix64(seed: seed)
        var counts: [String: Int] = [:]
        for number in 1...Self.phoneCount {
            var phone = try SimulatedPhone(seed: random.next(), mistake: mistake)
            for step in 1...Self.stepCount {
                do {
                    try phone.step()
                    if step % Self.activeCount == 0 {
                        try phone.rest()
                        try phone.restoreAtRest()
                    }
                } catch {
                    throw Violation(
                        (error as? Violation)?.law, "seed \(seed), phone \(number), step \(step): \(error)")
                }
            }
            counts.merge(phone.counts, uniquingKeysWith: +)
        }
        return counts
    }
}
