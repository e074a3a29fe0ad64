import Essentials

/// A recurrence rule of a meeting, in the format of OpenStack's `irc-meetings`.
struct MeetingSlot: Decodable, Sendable {
    let time: String
    let day: String
    let irc: String?
    let frequency: String?
    /// The former name of `frequency`.
    let period: String?
    let startDate: Int?
    let duration: Int?

    private enum CodingKeys: String, CodingKey {
        case time, day, irc, frequency, period, duration
        case startDate = "start_date"
    }

    /// The number of days within which every rule has an occurrence, including at the end of a year.
    private static let dayCountMax = 70

    /// `start_date` as a day: `yyyymmdd`.
    var start: Day? {
        startDate.flatMap { Day(year: $0 / 10_000, month: $0 / 100 % 100, day: $0 % 100) }
    }

    /// Returns the first occurrence on or after a day.
    func occurrence(from first: Day) throws(PublicDataProblem) -> Timestamp {
        // As in "2100 UTC", and "800".
        let digits = time.prefix { $0.isNumber }
        guard let clock = Int(digits), (3...4).contains(digits.count), clock < 2400, clock % 100 < 60 else {
            throw PublicDataProblem("the time '\(time.excerpt)' is not in the format HHMM")
        }
        guard let weekday = Day.Weekday.allCases.first(where: { day.lowercased().hasPrefix("\($0)") }) else {
            throw PublicDataProblem("the day '\(day.excerpt)' is not a weekday")
        }
        for offset in 0..<Self.dayCountMax {
            let day = first.adding(days: offset)
            guard try isOn(day, weekday) else { continue }
            let seconds = day.daysSinceEpoch * 86_400 + clock / 100 * 3600 + clock % 100 * 60
            return Timestamp(millisecondsSinceEpoch: Int64(seconds) * 1000)
        }
        throw PublicDataProblem("the meeting has no occurrence")
    }

    /// Weeks are ISO 8601's. Source: `recurrence.py` of OpenStack's yaml2ical.
    private func isOn(_ day: Day, _ weekday: Day.Weekday) throws(PublicDataProblem) -> Bool {
        let rule = frequency ?? period ?? "weekly"
        let isDay = day.weekday == weekday
        let week = Self.week(of: day)
        switch rule {
        case "daily": return true
        // An ad hoc meeting is at its time if it is called; "biweekly" alone does not select the weeks.
        case "weekly", "adhoc", "biweekly": return isDay
        case "biweekly-odd": return isDay && week % 2 == 1
        case "biweekly-even": return isDay && week % 2 == 0
        case "quadweekly": return isDay && week % 4 == 0
        case "quadweekly-alternate": return isDay && week % 4 == 2
        default:
            guard rule.hasPrefix("first-") else { throw PublicDataProblem("unknown frequency '\(rule.excerpt)'") }
            return isDay && day.date.day <= 7
        }
    }

    private static func week(of day: Day) -> Int {
        let thursday = day.adding(days: 4 - day.weekday.rawValue)
        guard let first = Day(year: thursday.date.year, month: 1, day: 1) else { return 1 }
        return first.days(until: thursday) / 7 + 1
    }
}
