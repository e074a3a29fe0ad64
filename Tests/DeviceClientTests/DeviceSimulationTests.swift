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
/// 6. the device holds the realms that the person may open, and shows them as the server holds them.
///
/// Mistakes that it found; the first four were made on purpose, the last three were not:
/// - objects are shown as they arrive (2);
/// - a reset leaves what was held before (1);
/// - a reset leaves what was staged before it (1);
/// - what a restore lost is not queued again: the queue gives up its client id (4);
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
        var random = SplitMix64(seed: seed)
        var counts: [String: Int] = [:]
        for phoneSeed in (0..<Self.phoneCount).map({ _ in random.next() }) {
            var phone = try SimulatedPhone(seed: phoneSeed)
            for step in 1...Self.stepCount {
                do {
                    try phone.step()
                    if step % Self.activeCount == 0 {
                        try phone.rest()
                        try phone.restoreAtRest()
                    }
                } catch {
                    throw Violation(description: "seed \(seed), phone \(phoneSeed), step \(step): \(error)")
                }
            }
            counts.merge(phone.counts, uniquingKeysWith: +)
        }
        for (what, least) in [
            ("rests", 200), ("checkpoints", 2_000), ("gaps", 10), ("restores", 20), ("compactions", 50),
            ("kills", 200),
            ("states written and read", 10), ("late answers", 20), ("permissions", 200), ("cuts", 300),
        ] {
            #expect(counts[what, default: 0] >= least, "seed \(seed): \(what)")
        }
    }
}
