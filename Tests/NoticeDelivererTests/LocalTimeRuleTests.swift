import Essentials
import Model
import TestSupport
import Testing

@testable import NoticeDeliverer

/// Quiet hours and digests in local time. Copenhagen is 2 h ahead of UTC from 2026-03-29 01:00 UTC to 2026-10-25 01:00
/// UTC, and otherwise 1 h.
@Suite(.ownThreads) struct LocalTimeRuleTests {
    private static func copenhagen(_ time: Timestamp) -> Int {
        let summer = (Timestamp("2026-03-29T01:00:00Z"), Timestamp("2026-10-25T01:00:00Z"))
        guard let begin = summer.0, let end = summer.1 else { return 0 }
        return time >= begin && time < end ? 7_200 : 3_600
    }

    private static func time(_ text: String) throws -> Timestamp { try #require(Timestamp("\(text):00Z")) }

    @Test(
        arguments: [
            // Summer, winter, and over midnight.
            ("22:00-06:30", "2026-07-01T19:59", nil), ("22:00-06:30", "2026-07-01T20:00", "2026-07-02T04:30"),
            ("22:00-06:30", "2026-07-02T04:29", "2026-07-02T04:30"), ("22:00-06:30", "2026-07-02T04:30", nil),
            ("22:00-06:30", "2026-12-01T21:00", "2026-12-02T05:30"),
            ("12:00-13:00", "2026-12-01T11:59", "2026-12-01T12:00"),
            // The nights of the clock changes are an hour shorter, and longer.
            ("22:00-06:30", "2026-03-28T22:00", "2026-03-29T04:30"),
            ("22:00-06:30", "2026-10-24T21:00", "2026-10-25T05:30"),
            // 02:30 is missing on the first: an hour later it is 03:30.
            ("22:00-02:30", "2026-03-28T23:00", "2026-03-29T01:30"),
            // 02:30 occurs twice on the second, and after the first occurrence it is 02:00 again.
            ("22:00-02:30", "2026-10-24T23:00", "2026-10-25T00:30"), ("22:00-02:30", "2026-10-25T00:45", nil),
            ("22:00-02:30", "2026-10-25T01:10", "2026-10-25T01:30"),
        ] as [(String, String, String?)])
    func quietHoursEndInLocalTime(hours: String, at: String, end: String?) throws {
        let hours = try #require(QuietHours(hours))
        let quietEnd = LocalTimeRule.quietEnd(hours, at: try Self.time(at), Self.copenhagen)
        #expect(try quietEnd == end.map(Self.time), "\(quietEnd.map { "\($0)" } ?? "none")")
    }

    @Test(arguments: [
        ("07:30", "2026-07-01T05:29", "2026-07-01T05:30"), ("07:30", "2026-07-01T05:30", "2026-07-02T05:30"),
        ("07:30", "2026-03-28T12:00", "2026-03-29T05:30"), ("07:30", "2026-10-24T12:00", "2026-10-25T06:30"),
        ("00:00", "2026-12-31T22:59", "2026-12-31T23:00"), ("00:15", "2026-12-31T22:59", "2026-12-31T23:15"),
    ])
    func nextOccurrenceOfATimeOfDay(minute: String, after: String, next: String) throws {
        let minute = try #require(MinuteOfDay(minute))
        #expect(
            try LocalTimeRule.next(minute, after: try Self.time(after), Self.copenhagen) == Self.time(next))
    }

    /// The next occurrence is later by at most a day and an hour, and has the local time or is after a gap.
    @Test func nextOccurrenceIsWithinADay() throws {
        let begin = try Self.time("2026-03-20T00:00").millisecondsSinceEpoch
        for minuteText in ["00:00", "02:30", "03:00", "23:59"] {
            let minute = try #require(MinuteOfDay(minuteText))
            for step in 0..<6_000 {
                let time = Timestamp(millisecondsSinceEpoch: begin + Int64(step) * 3_600_000 / 2)
                let next = LocalTimeRule.next(minute, after: time, Self.copenhagen)
                #expect(next > time && next <= time.adding(.seconds(25 * 3_600)))
                let shown = LocalTimeRule.minutes(at: next, Self.copenhagen)
                #expect(shown == minute.minutes || shown == minute.minutes + 60)
            }
        }
    }

    @Test func zonesMatchTheIANADatabase() throws {
        var zones = TimeZoneCache()
        let copenhagen = zones.zone("Europe/Copenhagen")
        let zone = try #require(copenhagen)
        for text in ["2026-03-29T00:59", "2026-03-29T01:00", "2026-10-25T00:59", "2026-10-25T01:00"] {
            #expect(try zone(Self.time(text)) == Self.copenhagen(Self.time(text)))
        }
        let kathmandu = zones.zone("Asia/Kathmandu")
        let nepal = try #require(kathmandu)
        #expect(try nepal(Self.time("2026-01-01T00:00")) == 20_700)
        for _ in 0..<2 {
            let nowhere = zones.zone("Europe/Nowhere")
            #expect(nowhere == nil)
        }
    }
}
