internal import BackendHTTP
internal import BackendProtocol
internal import Essentials
internal import Model

/// The used members of `TimeSheetEntry` of API_MANAGE_WORKFORCE_TIMESHEET.
struct SAPTimeSheetEntry: Codable, SAPRow {
    struct DataFields: Codable {
        // The names are the service's own.
        var TimeSheetNote: String?
        /// decimal(4,2), as a string.
        var RecordedHours: String?
        var HoursUnitOfMeasure: String?
        var RejectionReason: String?
        /// The assignment of the time: fields of `SAPReporting.vocabulary` by name. An empty value clears the field.
        var assignments: [String: String] = [:]
    }

    var TimeSheetDataFields: DataFields?
    var PersonWorkAgreementExternalID: String
    var CompanyCode: String
    var TimeSheetRecord: String?
    /// `/Date(milliseconds)/`
    var TimeSheetDate: String?
    var TimeSheetIsReleasedOnSave: Bool?
    var TimeSheetStatus: String?
    /// `C`, `U` or `D`. A POST without it returns 201 without effect (SAP KBA 3744148).
    var TimeSheetOperation: String?

    static let idMembers = ["TimeSheetRecord"]
    var key: String { TimeSheetRecord ?? "" }
}

/// The used members of the response to a write.
struct SAPRecordNumber: Decodable {
    var TimeSheetRecord: String?
}

extension SAPTimeSheetEntry.DataFields {
    private struct Key: CodingKey {
        let stringValue: String
        let intValue: Int? = nil
        init(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { nil }

        static let note = Key(stringValue: "TimeSheetNote")
        static let hours = Key(stringValue: "RecordedHours")
        static let unit = Key(stringValue: "HoursUnitOfMeasure")
        static let rejection = Key(stringValue: "RejectionReason")
    }

    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Key.self)
        TimeSheetNote = try container.decodeIfPresent(String.self, forKey: .note)
        RecordedHours = try container.decodeIfPresent(String.self, forKey: .hours)
        HoursUnitOfMeasure = try container.decodeIfPresent(String.self, forKey: .unit)
        RejectionReason = try container.decodeIfPresent(String.self, forKey: .rejection)
        for field in SAPReporting.vocabulary.fields {
            let value = try container.decodeIfPresent(String.self, forKey: Key(stringValue: field.name)) ?? ""
            if !value.isEmpty { assignments[field.name] = value }
        }
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Key.self)
        try container.encodeIfPresent(TimeSheetNote, forKey: .note)
        try container.encodeIfPresent(RecordedHours, forKey: .hours)
        try container.encodeIfPresent(HoursUnitOfMeasure, forKey: .unit)
        for (field, value) in assignments { try container.encode(value, forKey: Key(stringValue: field)) }
    }
}

/// Time values in SAP's formats.
enum SAPTime {
    /// `RecordedHours` is decimal(4,2).
    static let hoursMax = Hours(hundredths: 9999)

    /// Returns `/Date(…)/` of midnight UTC: the JSON form of `Edm.DateTime` in OData V2.
    static func date(_ day: Day) -> String { "/Date(\(day.daysSinceEpoch * 86_400_000))/" }

    /// Parses `/Date(1427673600000)/`, with or without an offset in minutes.
    static func day(_ date: String) -> Day? {
        guard date.hasPrefix("/Date("), date.hasSuffix(")/") else { return nil }
        let number = date.dropFirst(6).dropLast(2)
        let sign = number.prefix(1) == "-" ? "-" : ""
        guard let digits = number.dropFirst(sign.count).split(whereSeparator: { "+-".contains($0) }).first,
            let milliseconds = Int(sign + digits)
        else { return nil }
        let rest = milliseconds % 86_400_000
        let day = Day(daysSinceEpoch: milliseconds / 86_400_000 - (rest < 0 ? 1 : 0))
        return Day.range.contains(day) ? day : nil
    }

    /// Returns the literal of a filter.
    static func literal(_ day: Day) -> String { "datetime'\(day)T00:00:00'" }
}

extension BackendStatus {
    /// Creates a status from a CATS status code; source: SAP Help Portal, "Processing Statuses" of the time sheet.
    init?(sap code: String) {
        switch code {
        case "10": self = .inProcess
        case "20": self = .released
        case "30": self = .approved
        case "40": self = .rejected
        case "50": self = .changed
        case "60": self = .cancelled
        default: return nil
        }
    }

    /// Whether the record is neither deleted nor superseded.
    var isLive: Bool {
        switch self {
        case .inProcess, .released, .approved, .rejected, .recorded: true
        case .changed, .cancelled: false
        }
    }
}

extension BackendEntry {
    init(_ entry: SAPTimeSheetEntry, _ names: FieldNames) throws(BackendError) {
        // A number with a replaced character could be another record's.
        guard let id = entry.TimeSheetRecord, id.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }),
            let day = entry.TimeSheetDate.flatMap(SAPTime.day),
            let hours = entry.TimeSheetDataFields?.RecordedHours.flatMap({ Hours($0) }),
            let status = entry.TimeSheetStatus.flatMap(BackendStatus.init(sap:))
        else {
            let reason =
                "time sheet record \(entry.TimeSheetRecord ?? "without number") has an unreadable date, hours or "
                + "status: "
                + (entry.TimeSheetStatus ?? "no status")
            throw .notProcessed(reason: BackendMessage.truncated(reason), retryAfter: nil)
        }
        let (text, marker) = EntryMarker.split(note: entry.TimeSheetDataFields?.TimeSheetNote ?? "")
        var references: [String: String] = [:]
        for (field, value) in entry.TimeSheetDataFields?.assignments ?? [:] {
            if let name = names.name(of: value, in: field) { references[name] = names.reference(of: value, in: field) }
        }
        let rejection = entry.TimeSheetDataFields?.RejectionReason.flatMap { $0.isEmpty ? nil : $0 }
        self.init(
            id: id, marker: marker, day: day, durationSeconds: hours.seconds, text: text, status: status,
            references: references,
            message: status == .rejected ? rejection.map { BackendMessage.truncated("Rejected: reason \($0)") } : nil)
    }
}
