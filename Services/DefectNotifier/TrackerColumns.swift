import Compass
import Essentials

/// The columns that are asked for, by the names of the vendor's sample schema.
enum TrackerColumns {
    static let record = "id"
    static let headline = "Headline"
    static let state = "State"
    static let severity = "Severity"
    static let priority = "Priority"
    static let owner = "Owner"
    static let submitter = "Submitter"
    static let submitDate = "Submit_Date"
    static let action = "history.action_name"
    static let time = "history.action_timestamp"
    static let user = "history.user_name"
    /// The number of a row of the history in its database. The vendor's documents do not name it as a column.
    static let historyID = "history.dbid"
    /// The record's number in its database; every record has one above 0.
    static let number = "dbid"

    static let ofDefect = [record, headline, state, severity, priority, owner, submitter, submitDate]
    static let ofHistory = ofDefectsHistory + [historyID]
    /// For a tracker that has no column for the number of a row of its history.
    static let ofDefectsHistory = ofDefect + [action, time, user]
}

/// A row that says nothing that could be understood.
struct UnreadableRow: Error, Hashable, CustomStringConvertible {
    /// The record, where it is told.
    let record: String
    let reason: String
    var description: String { "\(record.isEmpty ? "a record without an id" : record): \(reason)" }
}

extension TrackedDefect {
    /// Reads a row by the names of its columns.
    init(_ row: ResultRow) throws(UnreadableRow) {
        func text(_ column: String) -> String? { row[column].flatMap { $0.isEmpty ? nil : $0 } }
        guard let record = text(TrackerColumns.record) else {
            throw UnreadableRow(record: "", reason: "it has no id")
        }
        // A name with a broken character would be another record's, or another person's.
        for column in [TrackerColumns.record, TrackerColumns.owner, TrackerColumns.submitter]
        where row[column]?.unicodeScalars.contains(where: Self.isBroken) ?? false {
            throw UnreadableRow(record: record, reason: "its \(column) has a character that cannot be read")
        }
        self.init(
            record: record, headline: row[TrackerColumns.headline] ?? "", state: text(TrackerColumns.state),
            severity: text(TrackerColumns.severity), priority: text(TrackerColumns.priority),
            owner: text(TrackerColumns.owner), submitter: text(TrackerColumns.submitter),
            submitDate: text(TrackerColumns.submitDate))
    }
}

extension TrackedDefect {
    private static func isBroken(_ scalar: Unicode.Scalar) -> Bool {
        scalar == "\u{FFFD}" || scalar.properties.generalCategory == .control
    }
}

extension HistoryRow {
    /// Reads a row by the names of its columns.
    init(_ row: ResultRow) throws(UnreadableRow) {
        let defect = try TrackedDefect(row)
        let written = row[TrackerColumns.time] ?? ""
        guard let time = CompassTime(written) else {
            throw UnreadableRow(record: defect.record, reason: "'\(written.excerpt)' is no time of its history")
        }
        guard let action = row[TrackerColumns.action], !action.isEmpty else {
            throw UnreadableRow(record: defect.record, reason: "its history has an action without a name")
        }
        self.init(
            defect: defect, action: action, user: row[TrackerColumns.user] ?? "", time: written,
            seconds: time.secondsOfItsClock, id: row[TrackerColumns.historyID].flatMap { $0.isEmpty ? nil : $0 })
    }
}
