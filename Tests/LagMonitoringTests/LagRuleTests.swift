import Testing

@testable import LagMonitoring

struct LagRuleTests {
    @Test func drainTimeNeedsDecreasingLag() {
        #expect(DrainRule.seconds(lag: 0, inPerSecond: 5, outPerSecond: nil) == 0)
        #expect(DrainRule.seconds(lag: 100, inPerSecond: 5, outPerSecond: 15) == 10)
        #expect(DrainRule.seconds(lag: 100, inPerSecond: 0, outPerSecond: 4) == 25)
        // Lag grows or is constant.
        #expect(DrainRule.seconds(lag: 100, inPerSecond: 15, outPerSecond: 5) == nil)
        #expect(DrainRule.seconds(lag: 100, inPerSecond: 5, outPerSecond: 5) == nil)
        #expect(DrainRule.seconds(lag: 100, inPerSecond: nil, outPerSecond: 5) == nil)
        #expect(DrainRule.seconds(lag: 100, inPerSecond: 5, outPerSecond: nil) == nil)
    }

    @Test func retentionDependsOnTheCleanupPolicy() {
        #expect(RetentionRule.seconds(["cleanup.policy": "delete", "retention.ms": "604800000"]) == 604_800)
        #expect(RetentionRule.seconds(["cleanup.policy": "compact, delete", "retention.ms": "1000"]) == 1)
        #expect(RetentionRule.seconds(["cleanup.policy": "compact", "retention.ms": "604800000"]) == nil)
        // Unlimited; unknown.
        #expect(RetentionRule.seconds(["cleanup.policy": "delete", "retention.ms": "-1"]) == nil)
        #expect(RetentionRule.seconds(["cleanup.policy": "delete"]) == nil)
        #expect(RetentionRule.headroom(age: 10, retention: 60) == 50)
        #expect(RetentionRule.headroom(age: 70, retention: 60) == 0)
    }

    @Test func rateIsAOneMinuteAverage() throws {
        var pace = RateAverage()
        #expect(pace.perSecond == nil)
        // Messages from before the first sample do not count.
        pace.take(1_000, at: 0)
        #expect(pace.perSecond == nil)
        for second in stride(from: Int64(10), through: 1_200, by: 10) {
            pace.take(50, at: second * 1_000)
            #expect(abs(try #require(pace.perSecond) - 5) < 0.001)
        }
        // After a minute a third of the old rate is left, after ten minutes nothing measurable.
        for second in stride(from: Int64(1_210), through: 1_260, by: 10) { pace.take(0, at: second * 1_000) }
        #expect(abs(try #require(pace.perSecond) - 5 * 0.3679) < 0.01)
        for second in stride(from: Int64(1_270), through: 1_860, by: 10) { pace.take(0, at: second * 1_000) }
        #expect(try #require(pace.perSecond) < 0.001)
        // Messages of a sample at the same time count in the next one.
        pace.take(600, at: 1_860_000)
        pace.take(0, at: 1_920_000)
        #expect(abs(try #require(pace.perSecond) - 10 * 0.6321) < 0.01)
    }

    @Test func burstInTheFirstIntervalDoesNotDominateTheRate() throws {
        var pace = RateAverage()
        pace.take(0, at: 0)
        pace.take(1_000, at: 10_000)
        #expect(try #require(pace.perSecond) == 100)
        for second in stride(from: Int64(20), through: 60, by: 10) { pace.take(0, at: second * 1_000) }
        // Near the mean over the minute, 16.7, and not the 43 that an average without a correction has.
        #expect((8...17).contains(try #require(pace.perSecond)))
    }
}
