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
    /// What the line says, for programs.
    public var code: Code?

    /// What a line says beside its status. Others may be added.
    public enum Code: String, Codable, CaseIterable, Sendable {
        /// The entry is not complete, or contradicts itself or what may be reported on; not sent.
        case problem
        /// The back end refused it; the message is the back end's own.
        case refused
        /// The device took the submission back, and the record is gone.
        case withdrawn
        /// Somebody changed the record in the back end.
        case recordChanged = "record-changed"
        /// The back end no longer has the record.
        case recordGone = "record-gone"
        /// The id is that of another person's entry.
        case idTaken = "id-taken"
    }

    /// A line of the log.
    public init(entry: UUID, status: EntryStatus, timestamp: Timestamp, message: String? = nil, code: Code? = nil) {
        self.entry = entry
        self.status = status
        self.timestamp = timestamp
        self.message = message
        self.code = code
    }
}
