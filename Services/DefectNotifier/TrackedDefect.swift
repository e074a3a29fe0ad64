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
