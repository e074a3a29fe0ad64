import BackendConnections
import Compass
import Essentials
import FoundationEssentials

/// A defect as a row of the tracker's response has it. Empty values are `nil`.
struct TrackedDefect: Equatable, Sendable {
    var record: String
    var headline: String
    var state: String?
    var severity: String?
    var priority: String?
    /// Login names of the tracker.
    var owner: String?
    var submitter: String?
    /// The tracker's local time.
    var submitDate: String?
}

/// A row of the history: one action on a defect, with the defect's current state.
struct HistoryRow: Equatable, Sendable {
    var defect: TrackedDefect
    var action: String
    /// The login name of the user who performed the action.
    var user: String
    /// The time as the tracker wrote it.
    var time: String
    /// The same time in seconds of the tracker's clock; see ``WatermarkRule``.
    var seconds: Int
    /// The tracker's number of the row; `nil` if it has no such column.
    var id: String?
}

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

extension TrackerIDs {
    /// Returns the id of a row of the history, made from the tracker's row number. In a tracker without row numbers,
    /// rows of one record with the same action, user and second share an id.
    func row(_ row: HistoryRow) -> UUID {
        guard let number = row.id else { return rowWithoutID(row) }
        return id("history", row.defect.record, number)
    }

    /// Returns the id of a row as earlier releases made it, so that rows which they processed are not notified again.
    func rowWithoutID(_ row: HistoryRow) -> UUID { id("row", row.defect.record, row.action, row.time, row.user) }

    /// Returns the id of the notice for a row and a person.
    ///
    /// - Parameter email: The person's e-mail address.
    func notice(of row: HistoryRow, to email: String) -> UUID {
        guard let number = row.id else {
            return id("notice", row.defect.record, row.action, row.time, row.user, email)
        }
        return id("notice of history", row.defect.record, number, email)
    }
}
