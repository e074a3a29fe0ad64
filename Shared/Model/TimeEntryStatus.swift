public import FoundationEssentials

/// Fields of a `TimeEntryStatus` object: one line of an entry's status log (the seed's `statusLog`).
///
/// A log line is an object of its own, because several writers append to a log. The line with the latest timestamp
/// carries the entry's current status.
public struct TimeEntryStatus: Codable, Equatable, Sendable {
    /// The id of the `TimeEntry` object.
    public var entry: UUID
    /// The status the entry took.
    public var status: EntryStatus
    /// When it took it.
    public var timestamp: Timestamp
    /// What a person should know, such as why an entry is invalid; one problem per line.
    public var message: String?

    /// A line of the log.
    public init(entry: UUID, status: EntryStatus, timestamp: Timestamp, message: String? = nil) {
        self.entry = entry
        self.status = status
        self.timestamp = timestamp
        self.message = message
    }
}
