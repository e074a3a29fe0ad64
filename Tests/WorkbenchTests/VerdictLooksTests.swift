import Testing

@testable import Workbench

/// When the demo's verdict is final.
@Suite struct VerdictLooksTests {
    private let one = [Verdict.Difference(person: "ana", subject: "line", detail: "the device has it")]
    private let other = [Verdict.Difference(person: "ana", subject: "entry", detail: "the device has it")]

    /// For each look, at so many seconds from the start, whether it is the last.
    private func areEnough(settle: Int, _ looks: [(seconds: Int, found: [Verdict.Difference])]) -> [Bool] {
        let start = ContinuousClock.now
        var state = VerdictLooks(settleMax: .seconds(settle))
        return looks.map { look in state.areEnough(look.found, now: start + .seconds(look.seconds)) }
    }

    /// A look that takes longer than differences need to go away is not the last one.
    @Test func aDifferenceIsLookedAtAgainHoweverLongALookTakes() {
        #expect(areEnough(settle: 30, [(300, one), (600, [])]) == [false, true])
    }

    @Test func whatStaysIsSaidOnceItCannotGoAway() {
        #expect(areEnough(settle: 30, [(0, one), (29, one), (30, one)]) == [false, false, true])
    }

    /// A slow machine has the whole time again after each change.
    @Test func changingDifferencesAreGivenMoreTime() {
        #expect(
            areEnough(settle: 30, [(0, one), (29, other), (31, other), (58, other), (59, other)])
                == [false, false, false, false, true])
        #expect(areEnough(settle: 30, [(0, one), (29, other), (58, one), (87, [])]) == [false, false, false, true])
    }

    @Test func itEnds() {
        let looks = (1...VerdictLooks.countMax).map { ($0, $0 % 2 == 0 ? one : other) }
        let last = areEnough(settle: 0, looks)
        #expect(last.last == true && last.dropLast().allSatisfy { !$0 })
    }
}
