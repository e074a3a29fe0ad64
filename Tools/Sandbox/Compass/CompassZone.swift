import Essentials

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
        let utc = floorDivide(Int(milliseconds), by: 1_000)
        let local = utc + (offsetMinutes + (isSummer(utc) ? 60 : 0)) * 60
        let day = Day(daysSinceEpoch: floorDivide(local, by: 86_400))
        let second = local - day.daysSinceEpoch * 86_400
        return "\(day) "
            + [second / 3_600, second / 60 % 60, second % 60].map { padded($0, to: 2) }.joined(separator: ":")
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
