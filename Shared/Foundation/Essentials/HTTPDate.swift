/// HTTP dates such as `Sun, 06 Nov 1994 08:49:37 GMT`, the only form that senders may generate (RFC 9110, 5.6.7).
extension Timestamp {
    private static let weekdays = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
    private static let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]

    /// The time as an HTTP date, to the second.
    package var httpText: String {
        let (year, month, dayOfMonth) = day.date
        let weekday = Self.weekdays[day.weekday.rawValue - 1]
        let time = description.dropFirst(11).prefix(8)
        return "\(weekday), \(padded(dayOfMonth, to: 2)) \(Self.months[month - 1]) \(padded(year, to: 4)) \(time) GMT"
    }

    /// Parses an HTTP date in the years 1 to 9999 to seconds since 1970; `nil` for any other text. The second may be
    /// 60, a leap second, which counts as the following second.
    package static func seconds(ofHTTPDate text: String) -> Int? {
        let parts = text.split(separator: " ")
        guard parts.count == 6, parts[5] == "GMT", let dayOfMonth = Int(parts[1]),
            let month = months.firstIndex(of: String(parts[2])), let year = Int(parts[3]),
            let day = Day(year: year, month: month + 1, day: dayOfMonth)
        else { return nil }
        let clock = parts[4].split(separator: ":", omittingEmptySubsequences: false).map { Int($0) ?? -1 }
        guard clock.count == 3, (0..<24).contains(clock[0]), (0..<60).contains(clock[1]), (0...60).contains(clock[2])
        else { return nil }
        return day.daysSinceEpoch * 86_400 + clock[0] * 3600 + clock[1] * 60 + clock[2]
    }
}
