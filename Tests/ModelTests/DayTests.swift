import Essentials
import Model
import Testing

@Suite struct DayTests {
    @Test(arguments: [
        ("1970-01-01", 0), ("1969-12-31", -1), ("2000-02-29", 11_016), ("2015-03-30", 16_524),
        ("0001-01-01", -719_162), ("9999-12-31", 2_932_896),
    ])
    func datesAreCountedFrom1970(text: String, days: Int) {
        #expect(Day(text)?.daysSinceEpoch == days)
        #expect(Day(daysSinceEpoch: days).description == text)
    }

    @Test(arguments: [
        "", "2015-3-30", "2015-03-30 ", " 2015-03-30", "2015-02-29", "1900-02-29", "2015-04-31", "2015-13-01",
        "2015-00-01", "2015-01-00", "0000-01-01", "2015/03/30", "20150330", "+015-03-30", "2015-03-30T00:00:00Z",
        "٢٠١٥-٠٣-٣٠",
    ])
    func invalidDateIsRejected(text: String) { #expect(Day(text) == nil) }

    @Test func everyDayOfFourCenturiesRoundTrips() throws {
        var weekday = try #require(Day("1900-01-01")).weekday
        #expect(weekday == .monday)
        let first = try #require(Day("1900-01-01"))
        for offset in 1..<146_097 {
            let day = first.adding(days: offset)
            let (year, month, dayOfMonth) = day.date
            try #require(Day(year: year, month: month, day: dayOfMonth) == day)
            try #require(day.weekday.rawValue == weekday.rawValue % 7 + 1)
            weekday = day.weekday
        }
        #expect(first.days(until: first.adding(days: 146_097)) == 146_097)
        #expect(first < first.adding(days: 1))
    }
}

@Suite struct TimeTests {
    @Test(arguments: [
        ("2015-03-30T08:00:00-04:00", "2015-03-30T08:00:00-04:00", "2015-03-30T12:00:00.000Z"),
        ("2015-03-30T23:30:00.250+05:45", "2015-03-30T23:30:00.250+05:45", "2015-03-30T17:45:00.250Z"),
        ("1969-12-31T23:59:59.999Z", "1969-12-31T23:59:59.999Z", "1969-12-31T23:59:59.999Z"),
        ("2015-03-30t08:00:00.1239z", "2015-03-30T08:00:00.123Z", "2015-03-30T08:00:00.123Z"),
        ("2015-01-01T00:30:00+01:00", "2015-01-01T00:30:00+01:00", "2014-12-31T23:30:00.000Z"),
    ])
    func zonedTimeKeepsOffsetAndTimestampIsUTC(text: String, zoned: String, timestamp: String) throws {
        #expect(ZonedTime(text)?.description == zoned)
        #expect(Timestamp(text)?.description == timestamp)
    }

    @Test(arguments: [
        "", "2015-03-30", "2015-03-30T08:00:00", "2015-03-30T24:00:00Z", "2015-03-30T08:60:00Z",
        "2015-03-30T08:00:60Z", "2015-03-30T08:00Z", "2015-03-30 08:00:00Z", "2015-03-30T08:00:00.Z",
        "2015-03-30T08:00:00+0400",
        "2015-03-30T08:00:00+24:00", "2015-03-30T08:00:00.1234567890Z", "2015-03-30T08:00:00Zx",
    ])
    func invalidTimeIsRejected(text: String) {
        #expect(ZonedTime(text) == nil)
        #expect(Timestamp(text) == nil)
    }

    @Test func dayFollowsTheClocksOffset() {
        #expect(ZonedTime("2015-01-01T00:30:00+01:00")?.day == Day("2015-01-01"))
        #expect(Timestamp("2015-01-01T00:30:00+01:00")?.day == Day("2014-12-31"))
    }
}
