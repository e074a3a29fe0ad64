import Testing

@testable import Workbench

/// When the demo's verdict is final.
@Suite struct VerdictLooksTests {
    private let one = [Verdict.Difference(person: "ana", subject: "line", detail: "the device has it")]
    private let other = [Verdict.Difference(person: "ana", subject: "entry", detail: "the device has it")]

    /// Of each look, in so many seconds from the start, whether it is the last; differences go away until `settled`.
    private func areEnough(settled: Int, _ looks: [(seconds: Int, found: [Verdict.Difference])]) -> [Bool] {
        let start = ContinuousClock.now
        var state = VerdictLooks(settled: start + .seconds(settled))
        return looks.map { look in state.areEnough(look.found, now: start + .seconds(look.seconds)) }
    }

    /// A look that takes longer than differences need to go away is not the last one.
    @Test func aDifferenceIsLookedAtAgainHoweverLongALookTakes() {
        #expect(areEnough(settled: 30, [(300, one), (600, [])]) == [false, true])
    }

    @Test func whatStaysIsSaidOnceItCannotGoAway() {
        #expect(areEnough(settled: 30, [(0, one), (29, one), (30, one)]) == [false, false, true])
    }

    @Test func whatChangesIsLookedAtAgain() {
        #expect(areEnough(settled: 0, [(1, one), (2, other), (3, other)]) == [false, false, true])
    }

    @Test func itEnds() {
        let looks = (1...VerdictLooks.countMax).map { ($0, $0 % 2 == 0 ? one : other) }
        let last = areEnough(settled: 0, looks)
        #expect(last.last == true && last.dropLast().allSatisfy { !$0 })
    }
}
