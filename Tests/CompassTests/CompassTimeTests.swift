import Compass
import TestSupport
import Testing

@Suite(.ownThreads) struct CompassTimeTests {
    @Test(arguments: [
        "2026-10-25 02:30:00", "1970-01-01 00:00:00", "1969-12-31 23:59:59", "2024-02-29 12:00:01",
        "0001-01-01 00:00:00",
    ]) func aTimeIsReadAndWrittenAlike(text: String) throws {
        #expect(try #require(CompassTime(text)).description == text)
    }

    @Test(arguments: [
        "", "2026-10-25", "2026-10-25T02:30:00Z", "2026-10-25T02:30:00", "2026-13-25 02:30:00", "2026-02-29 00:00:00",
        "2026-10-25 24:00:00",
        " 2026-10-25 02:30:00", "2026-10-25 02:30:00 ", "2026-10-25 02:30:00+01:00", "10/25/2026 2:30:00 AM",
    ]) func invalidTimeIsNil(text: String) { #expect(CompassTime(text) == nil) }

    @Test func fractionOfSecondIsTruncated() throws {
        let time = try #require(CompassTime("2026-10-25 02:30:00.987"))
        #expect(time.description == "2026-10-25 02:30:00")
        #expect(time.clockSeconds == CompassTime("2026-10-25 02:30:00")?.clockSeconds)
    }

    @Test func timesAreSecondsOfTheServerClock() throws {
        let time = try #require(CompassTime("2026-03-01 00:30:00"))
        #expect(time.adding(seconds: -3_600).description == "2026-02-28 23:30:00")
        #expect(time.adding(seconds: -3_600) < time)
        #expect([time, time.adding(seconds: 1)].max() == time.adding(seconds: 1))
    }
}
