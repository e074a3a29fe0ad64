import Compass
import Essentials

/// The requested columns, by the names of the vendor's sample schema.
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
    /// The record's number in its database, always above 0.
    static let number = "dbid"

    static let ofDefect = [record, headline, state, severity, priority, owner, submitter, submitDate]
    static let ofHistory = ofDefectsHistory + [historyID]
    /// The columns for a tracker without row numbers in its history.
    static let ofDefectsHistory = ofDefect + [action, time, user]
}

/// A row that cannot be decoded.
struct UnreadableRow: Error, Hashable, CustomStringConvertible {
    /// The record's id; empty if the row has none.
    let record: String
    let reason: String
    var description: String { "\(record.isEmpty ? "a record without an id" : record): \(reason)" }
}

extension TrackedDefect {
    /// Decodes a row by the names of its columns.
    init(_ row: ResultRow) throws(UnreadableRow) {
        func text(_ column: String) -> String? { row[column].flatMap { $0.isEmpty ? nil : $0 } }
        guard let record = text(TrackerColumns.record) else {
            throw UnreadableRow(record: "", reason: "has no id")
        }
        // A name with a broken character would be that of another record or person.
        for column in [TrackerColumns.record, TrackerColumns.owner, TrackerColumns.submitter]
        where row[column]?.unicodeScalars.contains(where: Self.isBroken) ?? false {
            throw UnreadableRow(record: record, reason: "column \(column) contains an invalid character")
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
    /// Decodes a row by the names of its columns.
    init(_ row: ResultRow) throws(UnreadableRow) {
        let defect = try TrackedDefect(row)
        let written = row[TrackerColumns.time] ?? ""
        guard let time = CompassTime(written) else {
            throw UnreadableRow(
                record: defect.record, reason: "column \(TrackerColumns.time) is no valid time: '\(written.excerpt)'")
        }
        guard let action = row[TrackerColumns.action], !action.isEmpty else {
            throw UnreadableRow(record: defect.record, reason: "column \(TrackerColumns.action) is empty")
        }
        self.init(
            defect: defect, action: action, user: row[TrackerColumns.user] ?? "", time: written,
            seconds: time.clockSeconds, id: row[TrackerColumns.historyID].flatMap { $0.isEmpty ? nil : $0 })
    }
}
