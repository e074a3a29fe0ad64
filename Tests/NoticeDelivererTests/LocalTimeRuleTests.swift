import Essentials
import Model
import Testing

@testable import NoticeDeliverer

/// Quiet hours and digests by a person's clock. Copenhagen is 1 h ahead of UTC, from 2026-03-29 01:00 UTC to 2026-10-25
/// 01:00 UTC 2 h.
@Suite struct LocalTimeRuleTests {
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
            // The nights of the changes are an hour shorter, and longer.
            ("22:00-06:30", "2026-03-28T22:00", "2026-03-29T04:30"),
            ("22:00-06:30", "2026-10-24T21:00", "2026-10-25T05:30"),
            // 02:30 is missing on the first: an hour later it is 03:30.
            ("22:00-02:30", "2026-03-28T23:00", "2026-03-29T01:30"),
            // 02:30 comes twice on the second, and after the first time it is 02:00 again.
            ("22:00-02:30", "2026-10-24T23:00", "2026-10-25T00:30"), ("22:00-02:30", "2026-10-25T00:45", nil),
            ("22:00-02:30", "2026-10-25T01:10", "2026-10-25T01:30"),
        ] as [(String, String, String?)])
    func quietHoursEndByThePersonsClock(hours: String, at: String, end: String?) throws {
        let hours = try #require(QuietHours(hours))
        let found = LocalTimeRule.quietEnd(hours, at: try Self.time(at), Self.copenhagen)
        #expect(try found == end.map(Self.time), "\(found.map { "\($0)" } ?? "none")")
    }

    @Test(arguments: [
        ("07:30", "2026-07-01T05:29", "2026-07-01T05:30"), ("07:30", "2026-07-01T05:30", "2026-07-02T05:30"),
        ("07:30", "2026-03-28T12:00", "2026-03-29T05:30"), ("07:30", "2026-10-24T12:00", "2026-10-25T06:30"),
        ("00:00", "2026-12-31T22:59", "2026-12-31T23:00"), ("00:15", "2026-12-31T22:59", "2026-12-31T23:15"),
    ])
    func theNextTimeOfTheDayIsFound(minute: String, after: String, next: String) throws {
        let minute = try #require(MinuteOfDay(minute))
        #expect(
            try LocalTimeRule.next(minute, after: try Self.time(after), Self.copenhagen) == Self.time(next))
    }

    /// Whatever the time: what comes next is after it, within a day and an hour, and is shown so or is missing.
    @Test func everyTimeComesAgainEveryDay() throws {
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

    @Test func theZonesOfTheDatabaseAreKnown() throws {
        var zones = Zones()
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
