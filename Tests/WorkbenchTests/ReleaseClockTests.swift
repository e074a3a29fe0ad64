import Essentials
import FoundationEssentials
import TestSupport
import Testing

@testable import Workbench

@Suite(.ownThreads) struct ReleaseClockTests {
    private let entry = StableID.uuid("entry")

    @Test func firstAttemptAndFirstReceiptCount() {
        var clock = ReleaseClock()
        let start = ContinuousClock.now
        clock.sent(entry, at: start)
        clock.sent(entry, at: start + .seconds(5))
        clock.seenReleased(entry, at: start + .seconds(7))
        clock.seenReleased(entry, at: start + .seconds(9))
        #expect(clock.measured == [.seconds(7)])
    }

    @Test func timeOfflineIsNotMeasured() {
        var clock = ReleaseClock()
        clock.sent(entry, at: .now)
        clock.wentOffline()
        clock.seenReleased(entry, at: .now + .seconds(60))
        #expect(clock.measured == [])
    }

    @Test func percentilesAreNearestRanks() {
        let percentiles = Percentiles((1...200).reversed().map { .seconds($0) })
        #expect(percentiles[50] == .seconds(100))
        #expect(percentiles[95] == .seconds(190))
        #expect(percentiles[99] == .seconds(198))
        #expect(Percentiles([.seconds(3)])[99] == .seconds(3))
        #expect(Percentiles([])[50] == nil)
    }
}
