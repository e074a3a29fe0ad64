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
        pace.take(100, at: 0)
        #expect(pace.perSecond == nil)
        pace.take(200, at: 10_000)
        #expect(pace.perSecond == 10)
        // After a minute a third of the old rate is left, after ten minutes nothing measurable.
        var offset: Int64 = 200
        for second in stride(from: Int64(20), through: 70, by: 10) { pace.take(offset, at: second * 1_000) }
        #expect(abs(try #require(pace.perSecond) - 10 * 0.3679) < 0.01)
        for second in stride(from: Int64(80), through: 1_300, by: 10) {
            offset += 50
            pace.take(offset, at: second * 1_000)
        }
        #expect(abs(try #require(pace.perSecond) - 5) < 0.001)
        // An offset that moved backwards counts as no growth; unknown offsets are skipped.
        pace.take(nil, at: 1_310_000)
        #expect(abs(try #require(pace.perSecond) - 5) < 0.001)
        pace.take(0, at: 1_320_000)
        #expect(try #require(pace.perSecond) < 4.5)
    }
}
