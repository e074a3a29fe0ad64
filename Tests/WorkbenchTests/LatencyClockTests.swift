import Essentials
import FoundationEssentials
import TestSupport
import Testing

@testable import Workbench

@Suite(.ownThreads) struct LatencyClockTests {
    private let entry = StableID.uuid("entry")

    @Test func firstAttemptAndFirstReceiptCount() {
        let clock = LatencyClock()
        let start = ContinuousClock.now
        clock.start(entry, at: start)
        clock.start(entry, at: start + .seconds(5))
        clock.stop(entry, at: start + .seconds(7))
        clock.stop(entry, at: start + .seconds(9))
        #expect(clock.measured == [.seconds(7)])
    }

    @Test func timeOfflineIsNotMeasured() {
        let clock = LatencyClock()
        clock.start(entry, at: .now)
        clock.wentOffline()
        clock.stop(entry, at: .now + .seconds(60))
        #expect(clock.measured == [])
    }

    @Test func percentilesAreNearestRanks() {
        let times = (1...200).reversed().map { Duration.seconds($0) }
        #expect(times.percentile(50) == .seconds(100))
        #expect(times.percentile(95) == .seconds(190))
        #expect(times.percentile(99) == .seconds(198))
        #expect([Duration.seconds(3)].percentile(99) == .seconds(3))
        #expect([Duration]().percentile(50) == nil)
    }
}
