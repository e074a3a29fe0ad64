import FoundationEssentials

/// The wall clock and the steady clock, as numbers.
package enum Timestamp {
    /// Milliseconds since 1970-01-01T00:00:00Z.
    package static func nowMilliseconds() -> Int64 { Int64((Date().timeIntervalSince1970 * 1000).rounded(.down)) }

    private static let start = ContinuousClock.now

    /// Nanoseconds of a clock that only goes forward, since some moment of this process; for measuring.
    package static func steadyNanoseconds() -> Int64 {
        (ContinuousClock.now - start).nanoseconds
    }

    /// RFC 3339 in UTC with milliseconds: `2026-03-29T01:02:03.004Z`.
    package static func text(milliseconds: Int64) -> String {
        let days = Int((Double(milliseconds) / 86_400_000).rounded(.down))
        let rest = Int(milliseconds) - days * 86_400_000
        let (year, month, day) = civil(fromDays: days)
        func padded(_ number: Int, _ width: Int) -> String {
            let digits = String(number)
            return String(repeating: "0", count: max(0, width - digits.count)) + digits
        }
        return padded(year, 4) + "-" + padded(month, 2) + "-" + padded(day, 2) + "T" + padded(rest / 3_600_000, 2) + ":"
            + padded(rest / 60_000 % 60, 2) + ":" + padded(rest / 1000 % 60, 2) + "." + padded(rest % 1000, 3) + "Z"
    }

    /// The time as HTTP has it (RFC 9110 §5.6.7): `Sun, 29 Mar 2026 01:02:03 GMT`.
    static func httpText(milliseconds: Int64) -> String {
        let text = Array(text(milliseconds: milliseconds))
        // 1970-01-01 was a Thursday.
        let days = Int((Double(milliseconds) / 86_400_000).rounded(.down))
        let weekday = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"][((days % 7) + 7) % 7]
        let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
        let month = months[(Int(String(text[5..<7])) ?? 1) - 1]
        return "\(weekday), \(String(text[8..<10])) \(month) \(String(text[..<4])) \(String(text[11..<19])) GMT"
    }

    /// The Gregorian date of a day number. Source: Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms".
    private static func civil(fromDays days: Int) -> (year: Int, month: Int, day: Int) {
        let shifted = days + 719_468
        let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
        let dayOfEra = shifted - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shiftedMonth = (5 * dayOfYear + 2) / 153
        let month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
        let year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
        return (year, month, dayOfYear - (153 * shiftedMonth + 2) / 5 + 1)
    }
}
