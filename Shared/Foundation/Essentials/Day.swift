/// A date of the proleptic Gregorian calendar without time and zone, written `2015-03-30` (RFC 3339 `full-date`).
///
/// Years 0001 to 9999. Arithmetic counts days, independent of daylight saving and locale.
public struct Day: Codable, Hashable, Comparable, Sendable, LosslessStringConvertible {
    /// A day of the week; the raw value is ISO 8601's number, Monday is 1.
    public enum Weekday: Int, CaseIterable, Sendable {
        /// The days, starting with Monday as in ISO 8601.
        case monday = 1, tuesday, wednesday, thursday, friday, saturday, sunday
    }

    /// Days since 1970-01-01; negative for earlier days.
    public let daysSinceEpoch: Int

    /// All valid days: 0001-01-01 to 9999-12-31.
    public static let range = Day(daysSinceEpoch: -719_162)...Day(daysSinceEpoch: 2_932_896)

    /// Creates the day `daysSinceEpoch` days after 1970-01-01.
    public init(daysSinceEpoch: Int) { self.daysSinceEpoch = daysSinceEpoch }

    /// Creates a day from its date; `nil` if the calendar has no such date or the year is not in 1...9999.
    public init?(year: Int, month: Int, day: Int) {
        guard (1...9999).contains(year), (1...12).contains(month), day >= 1 else { return nil }
        guard day <= Self.dayCount(ofMonth: month, in: year) else { return nil }
        daysSinceEpoch = Self.days(year: year, month: month, day: day)
    }

    /// Reads exactly `yyyy-MM-dd`; `nil` for other formats.
    public init?(_ description: String) {
        var text = ASCIIReader(description)
        guard let year = text.digits(4), text.skip("-"), let month = text.digits(2), text.skip("-"),
            let day = text.digits(2), text.isAtEnd
        else { return nil }
        self.init(year: year, month: month, day: day)
    }

    /// The date as `yyyy-MM-dd`.
    public var description: String {
        let (year, month, day) = date
        return padded(year, to: 4) + "-" + padded(month, to: 2) + "-" + padded(day, to: 2)
    }

    /// The calendar's year, month (1...12) and day of the month (1...31).
    ///
    /// Source: Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms", `civil_from_days`.
    public var date: (year: Int, month: Int, day: Int) {
        let shifted = daysSinceEpoch + 719_468  // days since 0000-03-01
        let era = floorDivide(shifted, by: 146_097)
        let dayOfEra = shifted - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shiftedMonth = (5 * dayOfYear + 2) / 153
        let day = dayOfYear - (153 * shiftedMonth + 2) / 5 + 1
        let month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
        return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, day)
    }

    /// The day of the week.
    public var weekday: Weekday {
        let fromMonday = daysSinceEpoch + 3  // 1970-01-01 was a Thursday
        return Weekday.allCases[fromMonday - floorDivide(fromMonday, by: 7) * 7]
    }

    /// Returns the day `days` days later, or earlier if `days` is negative.
    public func adding(days: Int) -> Day { Day(daysSinceEpoch: daysSinceEpoch + days) }

    /// Returns the number of days from this day to `other`; negative if `other` is earlier.
    public func days(until other: Day) -> Int { other.daysSinceEpoch - daysSinceEpoch }

    /// Orders days chronologically.
    public static func < (left: Day, right: Day) -> Bool { left.daysSinceEpoch < right.daysSinceEpoch }

    /// Reads the day from a JSON string.
    public init(from decoder: any Decoder) throws {
        let text = try decoder.singleValueContainer().decode(String.self)
        guard let day = Day(text) else { throw decoder.corrupted("'\(text)' is not a date as yyyy-MM-dd") }
        self = day
    }

    /// Writes the day as a JSON string.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(description)
    }

    /// Source: Howard Hinnant, as above, `days_from_civil`.
    private static func days(year: Int, month: Int, day: Int) -> Int {
        let shiftedYear = month <= 2 ? year - 1 : year
        let era = floorDivide(shiftedYear, by: 400)
        let yearOfEra = shiftedYear - era * 400
        let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
        return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
    }

    private static func dayCount(ofMonth month: Int, in year: Int) -> Int {
        let isLeap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
        return month == 2 ? (isLeap ? 29 : 28) : [4, 6, 9, 11].contains(month) ? 30 : 31
    }
}

/// Division that rounds towards negative infinity, so that days before 1970 fall into the right era.
package func floorDivide(_ value: Int, by divisor: Int) -> Int {
    let quotient = value / divisor
    return value % divisor < 0 ? quotient - 1 : quotient
}
