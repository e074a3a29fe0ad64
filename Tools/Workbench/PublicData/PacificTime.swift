import Essentials

/// Local time of Los Angeles, by the rule since 2007 (Energy Policy Act of 2005, section 110): UTC-7 from 2:00 on the
/// second Sunday of March to 2:00 on the first Sunday of November, UTC-8 otherwise.
enum PacificTime {
    /// Parses `MM/DD/YYYY hh:mm:ss AM|PM`; `nil` if the text is malformed.
    ///
    /// The repeated hour in November is the first one; the skipped hour in March is read as if it existed.
    static func timestamp(_ text: String) -> Timestamp? {
        let parts = text.split(separator: " ")
        guard parts.count == 3, let date = numbers(parts[0], "/", count: 3),
            let time = numbers(parts[1], ":", count: 3), let day = Day(year: date[2], month: date[0], day: date[1]),
            (1...12).contains(time[0]), time[1] < 60, time[2] < 60, parts[2] == "AM" || parts[2] == "PM"
        else { return nil }
        let hour = time[0] % 12 + (parts[2] == "PM" ? 12 : 0)
        let local = day.daysSinceEpoch * 86_400 + hour * 3600 + time[1] * 60 + time[2]
        let seconds = local + (isDaylightSaving(day, hour: hour) ? 7 : 8) * 3600
        return Timestamp(millisecondsSinceEpoch: Int64(seconds) * 1000)
    }

    private static func numbers(_ text: Substring, _ separator: Character, count: Int) -> [Int]? {
        let parts = text.split(separator: separator, omittingEmptySubsequences: false)
        let numbers = parts.compactMap { part in part.allSatisfy(\.isASCII) ? Int(part) : nil }.filter { $0 >= 0 }
        return numbers.count == count && parts.count == count ? numbers : nil
    }

    private static func isDaylightSaving(_ day: Day, hour: Int) -> Bool {
        let year = day.date.year
        guard let march = Day(year: year, month: 3, day: 8), let november = Day(year: year, month: 11, day: 1)
        else { return false }
        return (sunday(from: march), 2) <= (day, hour) && (day, hour) < (sunday(from: november), 2)
    }

    /// The first Sunday on or after a day.
    private static func sunday(from day: Day) -> Day { day.adding(days: 7 - day.weekday.rawValue) }
}
