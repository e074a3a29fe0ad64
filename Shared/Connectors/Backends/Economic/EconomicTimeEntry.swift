internal import BackendHTTP
internal import BackendProtocol
internal import Essentials
internal import Model

/// `TimeEntry` of the Projects API, as far as it is used. The names are the vendor's own.
struct EconomicTimeEntry: Codable, EconomicRow {
    /// 0 in what is still to be created: the vendor gives the number.
    var number: Int
    var employeeNumber: Int
    var projectNumber: Int
    var activityNumber: Int
    /// A date-time; its first ten characters are the day.
    var date: String
    var numberOfHours: Double?
    var text: String?
    /// Read-only. A false one is left out.
    var isApproved: Bool?
    /// Read-only. A false one is left out.
    var isReconciled: Bool?
    /// Read-only.
    var lastUpdated: String?
    /// Names the version that a PUT changes.
    var objectVersion: String?

    /// Whether the same was registered in both, and the same was approved, whatever their versions.
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

/// Time in e-conomic's spelling.
enum EconomicTime {
    /// Midnight UTC, which is the same day in Denmark, and wherever else e-conomic is sold.
    static func date(_ day: Day) -> String { "\(day)T00:00:00Z" }

    static func day(_ date: String) -> Day? { Day(String(date.prefix(10))) }

    /// Two decimals, rounded half up: 5400 s are 1.5, 18 s are 0.01.
    static func number(of hours: Hours) -> Double { Double(hours.hundredths) / 100 }

    /// Hours that were registered elsewhere may have more decimals; they are rounded to two. `nil` when it is no
    /// number of hours.
    static func hours(_ number: Double) -> Hours? {
        let hundredths = (number * 100).rounded()
        return abs(hundredths) < 1e9 ? Hours(hundredths: Int(hundredths)) : nil
    }
}

extension BackendEntry {
    init(_ entry: EconomicTimeEntry, _ names: FieldNames) throws(BackendError) {
        guard let day = EconomicTime.day(entry.date), let hours = EconomicTime.hours(entry.numberOfHours ?? 0) else {
            let reason = "time entry \(entry.number) has a date or hours that cannot be read: \(entry.date)"
            throw .notProcessed(reason: BackendMessage.bounded(reason), retryAfter: nil)
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
