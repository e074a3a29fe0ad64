import Essentials

/// The switches of the Compass emulator.
struct CompassSwitches: EmulatorSwitches {
    static let altersTexts = false

    /// The server's zone.
    var zone = CompassZone()
    /// Seconds by which the server's clock is ahead; behind, if negative.
    var clockSkewSeconds = 0
    /// Milliseconds until queries show a row of history. Its time stamp is that of the change.
    var visibleAfterMs = 0
    /// Lifetime of a token.
    var tokenSecondsMax = 86_400
    /// Maximum number of rows per page.
    var pageRowsMax = 10_000
    /// A further page is the first one again.
    var ignoresPageNumber = false
    /// Fields of a record, and columns of a query that is made, come in another order than they have or were given in.
    var shufflesFields = false
    /// A field of records whose value is a list instead of a text; empty: none.
    var unreadableField = ""
    /// Rows of history have no number: a query with that column is refused.
    var hidesHistoryIDs = false
    /// All logins are rejected: passwords and tokens.
    var refusesLogins = false
    /// The status with which a proxy before the server responds to every call; 0: no proxy.
    var proxyStatus = 0

    func check() throws {
        try FaultSwitches.check(times: [
            visibleAfterMs, abs(clockSkewSeconds), tokenSecondsMax, pageRowsMax,
        ])
        guard proxyStatus == 0 || (300..<600).contains(proxyStatus) else {
            throw EmulatorError("a proxy's status is from 300 to 599, or 0 for none")
        }
        guard pageRowsMax > 0 else { throw EmulatorError("a page has 1 row or more") }
        guard abs(zone.offsetMinutes) <= 14 * 60 else {
            throw EmulatorError("a zone is at most 14 hours from UTC")
        }
    }
}

/// The time zone of the server's clock, which shows local time without its zone.
struct CompassZone: Codable, Equatable, Sendable {
    enum Summer: String, Codable, Sendable {
        case none
        /// From 01:00 UTC on the last Sunday of March to 01:00 UTC on that of October (Directive 2000/84/EC).
        case eu
        /// From 2:00 on the second Sunday of March to 2:00 on the first Sunday of November.
        case us
    }

    /// The offset of standard time from UTC, in minutes.
    var offsetMinutes = 0
    var summer = Summer.none

    static let utc = CompassZone()

    /// `2026-10-25 02:30:00`
    func text(_ milliseconds: Int64) -> String {
        let minutes = offsetMinutes + (isSummer(floorDivide(Int(milliseconds), by: 1_000)) ? 60 : 0)
        let text = ZonedTime(millisecondsSinceEpoch: milliseconds, offsetSeconds: minutes * 60).description
        return "\(text.prefix(10)) \(text.dropFirst(11).prefix(8))"
    }

    private func isSummer(_ seconds: Int) -> Bool {
        let year = Day(daysSinceEpoch: floorDivide(seconds, by: 86_400)).date.year
        switch summer {
        case .none: return false
        case .eu: return Self.last(3, year) + 3_600 <= seconds && seconds < Self.last(10, year) + 3_600
        case .us:
            let standard = seconds + offsetMinutes * 60
            return Self.first(3, year) + 7 * 86_400 + 7_200 <= standard && standard < Self.first(11, year) + 3_600
        }
    }

    /// Midnight of the last Sunday of a month that has 31 days, and of the first of any, as seconds since 1970.
    private static func last(_ month: Int, _ year: Int) -> Int {
        let end = Day(year: year, month: month, day: 31) ?? Day(daysSinceEpoch: 0)
        return (end.daysSinceEpoch - end.weekday.rawValue % 7) * 86_400
    }

    private static func first(_ month: Int, _ year: Int) -> Int {
        let begin = Day(year: year, month: month, day: 1) ?? Day(daysSinceEpoch: 0)
        return (begin.daysSinceEpoch + 7 - begin.weekday.rawValue) * 86_400
    }
}
