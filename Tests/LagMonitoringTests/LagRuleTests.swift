import Testing

@testable import LagMonitoring

struct LagRuleTests {
    @Test func aLagIsOverWhenMoreGoesThanComes() {
        #expect(ClosingRule.seconds(lag: 0, comes: 5, goes: nil) == 0)
        #expect(ClosingRule.seconds(lag: 100, comes: 5, goes: 15) == 10)
        #expect(ClosingRule.seconds(lag: 100, comes: 0, goes: 4) == 25)
        // It grows, or stays.
        #expect(ClosingRule.seconds(lag: 100, comes: 15, goes: 5) == nil)
        #expect(ClosingRule.seconds(lag: 100, comes: 5, goes: 5) == nil)
        #expect(ClosingRule.seconds(lag: 100, comes: nil, goes: 5) == nil)
        #expect(ClosingRule.seconds(lag: 100, comes: 5, goes: nil) == nil)
    }

    @Test func ageRemovesMessagesWhereTheTopicSaysSo() {
        #expect(RetentionRule.seconds(["cleanup.policy": "delete", "retention.ms": "604800000"]) == 604_800)
        #expect(RetentionRule.seconds(["cleanup.policy": "compact, delete", "retention.ms": "1000"]) == 1)
        #expect(RetentionRule.seconds(["cleanup.policy": "compact", "retention.ms": "604800000"]) == nil)
        // Kept for ever; not told.
        #expect(RetentionRule.seconds(["cleanup.policy": "delete", "retention.ms": "-1"]) == nil)
        #expect(RetentionRule.seconds(["cleanup.policy": "delete"]) == nil)
        #expect(RetentionRule.headroom(age: 10, retention: 60) == 50)
        #expect(RetentionRule.headroom(age: 70, retention: 60) == 0)
    }

    @Test func aPaceIsThatOfTheLastMinute() throws {
        var pace = Pace()
        #expect(pace.perSecond == nil)
        pace.take(100, at: 0)
        #expect(pace.perSecond == nil)
        pace.take(200, at: 10_000)
        #expect(pace.perSecond == 10)
        // A minute later a third is left of what was, and after ten nothing that could be seen.
        var offset: Int64 = 200
        for second in stride(from: Int64(20), through: 70, by: 10) { pace.take(offset, at: second * 1_000) }
        #expect(abs(try #require(pace.perSecond) - 10 * 0.3679) < 0.01)
        for second in stride(from: Int64(80), through: 1_300, by: 10) {
            offset += 50
            pace.take(offset, at: second * 1_000)
        }
        #expect(abs(try #require(pace.perSecond) - 5) < 0.001)
        // What went back did not grow; what is not known is passed over.
        pace.take(nil, at: 1_310_000)
        #expect(abs(try #require(pace.perSecond) - 5) < 0.001)
        pace.take(0, at: 1_320_000)
        #expect(try #require(pace.perSecond) < 4.5)
    }
}
