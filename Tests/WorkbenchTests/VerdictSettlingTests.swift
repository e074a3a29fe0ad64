import TestSupport
import Testing

@testable import Workbench

/// The conditions of a final verdict.
@Suite(.ownThreads) struct VerdictSettlingTests {
    private let one = [Verdict.Difference(person: "ana", subject: "line", detail: "the device has it")]
    private let other = [Verdict.Difference(person: "ana", subject: "entry", detail: "the device has it")]

    /// For each comparison, with its time in seconds, whether it is the last.
    private func areFinal(settle: Int, _ checks: [(seconds: Int, found: [Verdict.Difference])]) -> [Bool] {
        let start = ContinuousClock.now
        var state = VerdictSettling(settleMax: .seconds(settle))
        return checks.map { check in state.areFinal(check.found, now: start + .seconds(check.seconds)) }
    }

    /// A comparison that takes longer than differences need to disappear is not the last one.
    @Test func differenceIsComparedAgainAfterALongComparison() {
        #expect(areFinal(settle: 30, [(300, one), (600, [])]) == [false, true])
    }

    @Test func unchangedDifferencesAreFinalAfterTheTimeLimit() {
        #expect(areFinal(settle: 30, [(0, one), (29, one), (30, one)]) == [false, false, true])
    }

    /// The time restarts after each change, for slow machines.
    @Test func changedDifferencesRestartTheTimeLimit() {
        #expect(
            areFinal(settle: 30, [(0, one), (29, other), (31, other), (58, other), (59, other)])
                == [false, false, false, false, true])
        #expect(areFinal(settle: 30, [(0, one), (29, other), (58, one), (87, [])]) == [false, false, false, true])
    }

    @Test func comparisonsAreBounded() {
        let checks = (1...VerdictSettling.countMax).map { ($0, $0 % 2 == 0 ? one : other) }
        let last = areFinal(settle: 0, checks)
        #expect(last.last == true && last.dropLast().allSatisfy { !$0 })
    }
}
