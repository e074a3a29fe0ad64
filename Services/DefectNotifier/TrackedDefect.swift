/// A defect as a row of the tracker's answer tells it. What is empty there is `nil`.
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

/// One thing that happened to a defect, beside what the defect is by now: a row of its history.
struct HistoryRow: Equatable, Sendable {
    var defect: TrackedDefect
    var action: String
    /// The login name of who did it.
    var user: String
    /// As the tracker wrote it.
    var time: String
    /// The same as seconds of the tracker's clock; see ``WatermarkRule``.
    var seconds: Int
    /// The tracker's number of the row; `nil` when it has no such column.
    var id: String?
}
