import Essentials
import TestSupport
import Testing

/// One device and a naive server in random steps: streams are interrupted anywhere; requests and responses are lost,
/// delayed and repeated; the device is killed and resumes from its stored state; the database is compacted and
/// restored; access to a realm is revoked and granted.
///
/// After every line:
/// - 1. at a checkpoint, the copy equals the server's content at its position;
/// - 2. between checkpoints the shown content does not change, except for a realm that was closed.
///
/// After every step:
/// - 3. the person's changes of their own objects are shown (until a restore, which the device may not have detected
///   yet).
///
/// When idle:
/// - 4. every mutation was processed once and in order, including those that a restore had lost;
/// - 5. the device received the server's result of each;
/// - 6. the device has the realms that the person can open, and shows them as the server has them;
/// - 7. the device becomes idle: without further faults, there is soon nothing left to do.
///
/// And 8: a stored state is decoded unchanged.
///
/// The simulation must also fail: it detects every ``Mistake``. It detected three more in the library itself:
/// - a restore lost only the last result: the mutation was reprocessed when it was queried, and the new result was not
///   reported (5);
/// - the same, if that response was lost too and another request followed (5);
/// - a mutation rejected before a restore and accepted after it was not shown until its checkpoint, except after the
///   state was reloaded.
@Suite(.ownThreads) struct DeviceSimulationTests {
    /// The steps of one phone, and between two idle phases.
    private static let stepCount = 1_000
    private static let activeCount = 125
    private static let phoneCount = 25

    @Test(arguments: Seeds.random(8, for: "device")) func simulatedDeviceConverges(seed: UInt64) throws {
        let counts = try run(seed)
        for (what, least) in [
            ("idle phases", 200), ("checkpoints", 2_000), ("gaps", 10), ("restores", 20), ("compactions", 50),
            ("kills", 200), ("states stored and reloaded", 10), ("late responses", 20), ("permissions", 200),
            ("cuts", 300),
            ("own mutations rejected", 100), ("last results lost", 50),
        ] {
            #expect(counts[what, default: 0] >= least, "seed \(seed): \(what)")
        }
    }

    @Test(arguments: Mistake.allCases, Seeds.random(1, for: "device with a mistake"))
    func mistakeIsDetected(mistake: Mistake, seed: UInt64) throws {
        let violation = #expect(throws: Violation.self, "seed \(seed)") { try run(seed, mistake: mistake) }
        guard let violation else { return }
        #expect(violation.law.map(mistake.laws.contains) == true, "\(violation)")
    }

    /// - Returns: The number of occurrences by event.
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
                        try phone.restoreWhenIdle()
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
