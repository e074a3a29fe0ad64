import Essentials
import FoundationEssentials
import Model

/// A row of a weekly time sheet: a person's hours for one project and one period.
struct WeekRow: Equatable, Sendable {
    let id: Int
    let person: String
    let period: ClosedRange<Day>
    let project: String
    let element: String
    let hours: Hours
}

/// Spreads rows by the week over days.
enum WeekSpread {
    /// A part of a row on one day.
    struct Part: Equatable, Sendable {
        let row: WeekRow
        let day: Day
        let durationSeconds: Int
    }

    /// A day takes this much before the next one is used.
    static let daySecondsUsual = 8 * 3600
    private static let quarterHour = 900

    /// Lays the rows of one person and period one after the other over the period's Monday to Friday (over all its days
    /// when it has none of these).
    ///
    /// A day takes 8 hours, or more when the whole would not fit: then the total divided by the number of days, rounded
    /// up to a quarter of an hour. A row's parts sum up to its hours exactly, each a whole number of hundredths of an
    /// hour. A row of 0 hours becomes one part of 0 on the day where it stands.
    static func spread(_ rows: [WeekRow], over period: ClosedRange<Day>) -> [Part] {
        let days = workingDays(of: period)
        let total = rows.reduce(0) { $0 + $1.hours.seconds }
        let share = (total + days.count - 1) / days.count
        let capacity = max(daySecondsUsual, (share + quarterHour - 1) / quarterHour * quarterHour)
        var parts: [Part] = []
        var used = 0
        for row in rows {
            var rest = row.hours.seconds
            repeat {
                let index = min(used / capacity, days.count - 1)
                let taken = min(rest, capacity - used % capacity)
                parts.append(Part(row: row, day: days[index], durationSeconds: taken))
                used += taken
                rest -= taken
            } while rest > 0
        }
        return parts
    }

    private static func workingDays(of period: ClosedRange<Day>) -> [Day] {
        let count = period.lowerBound.days(until: period.upperBound) + 1
        let days = (0..<count).map { period.lowerBound.adding(days: $0) }
        let working = days.filter { $0.weekday.rawValue <= Day.Weekday.friday.rawValue }
        return working.isEmpty ? days : working
    }
}
