internal import BackendHTTP
internal import BackendProtocol
internal import Essentials
internal import Model

/// The used members of `TimeEntry` of the Projects API. The names are the vendor's own.
struct EconomicTimeEntry: Codable, EconomicRow {
    /// The vendor assigns the number; 0 for an entry that is not created yet.
    var number: Int
    var employeeNumber: Int
    var projectNumber: Int
    var activityNumber: Int
    /// A date-time; its first ten characters are the day.
    var date: String
    var numberOfHours: Double?
    var text: String?
    /// Read-only. Omitted if false.
    var isApproved: Bool?
    /// Read-only. Omitted if false.
    var isReconciled: Bool?
    /// Read-only.
    var lastUpdated: String?
    /// The version that a PUT replaces.
    var objectVersion: String?

    /// Returns whether the registered values and the approval are equal, regardless of versions.
    func hasSameContent(as other: EconomicTimeEntry) -> Bool {
        func content(_ entry: EconomicTimeEntry) -> EconomicTimeEntry {
            var content = entry
            (content.lastUpdated, content.objectVersion) = (nil, nil)
            return content
        }
        return content(self) == content(other)
    }
}

extension EconomicTimeEntry: Equatable {}

/// Time values in e-conomic's formats.
enum EconomicTime {
    /// Returns midnight UTC, which is the same day in Denmark and all other countries of e-conomic.
    static func date(_ day: Day) -> String { "\(day)T00:00:00Z" }

    static func day(_ date: String) -> Day? { Day(String(date.prefix(10))) }

    /// Two decimals, rounded half up: 5400 s are 1.5, 18 s are 0.01.
    static func number(of hours: Hours) -> Double { Double(hours.hundredths) / 100 }

    /// Returns hours with two decimals: entries from other clients may have more. `nil` if the number is out of range.
    static func hours(_ number: Double) -> Hours? {
        let hundredths = (number * 100).rounded()
        return abs(hundredths) < 1e9 ? Hours(hundredths: Int(hundredths)) : nil
    }
}

extension BackendEntry {
    init(_ entry: EconomicTimeEntry, _ names: FieldNames) throws(BackendError) {
        guard let day = EconomicTime.day(entry.date), let hours = EconomicTime.hours(entry.numberOfHours ?? 0) else {
            let reason = "time entry \(entry.number) has an unreadable date or hours: \(entry.date)"
            throw .notProcessed(reason: BackendMessage.truncated(reason), retryAfter: nil)
        }
        let (text, marker) = EntryMarker.split(note: entry.text ?? "")
        var references: [String: String] = [:]
        for (field, number) in [
            (EconomicReporting.projectNumber, entry.projectNumber),
            (EconomicReporting.activityNumber, entry.activityNumber),
        ] {
            let value = String(number)
            if let name = names.name(of: value, in: field) { references[name] = names.reference(of: value, in: field) }
        }
        let isRecorded = entry.isReconciled == true
        self.init(
            id: String(entry.number), marker: marker, day: day, durationSeconds: hours.seconds, text: text,
            status: isRecorded ? .recorded : entry.isApproved == true ? .approved : .released,
            references: references, version: entry.lastUpdated)
    }
}
