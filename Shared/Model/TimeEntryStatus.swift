public import Essentials
public import FoundationEssentials

/// Fields of a `TimeEntryStatus` object: one line of an entry's status log (the first model's `statusLog`).
///
/// Each log line is a separate object, because several writers append to a log. The line with the latest timestamp has
/// the entry's current status.
public struct TimeEntryStatus: Codable, Equatable, Sendable {
    /// The id of the `TimeEntry` object.
    public var entry: UUID
    /// The new status of the entry.
    public var status: EntryStatus
    /// The time of the change.
    public var timestamp: Timestamp
    /// A message for display, such as the reason why an entry is invalid; one problem per line.
    public var message: String?
    /// The reason for the line, for programs.
    public var code: Code?

    /// The reason for a line. Codes may be added; a program displays the message if it does not support the code.
    public struct Code: RawRepresentable, Codable, Hashable, Sendable {
        /// The code in JSON.
        public let rawValue: String
        /// Creates a code from any text.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// The entry is incomplete, inconsistent, or contradicts the reporting data.
        public static let problem = Code(rawValue: "problem")
        /// The back end rejected the entry, or would reject it.
        public static let refused = Code(rawValue: "refused")
        /// The device withdrew the submission, and the back end's record is removed.
        public static let withdrawn = Code(rawValue: "withdrawn")
        /// The record was changed in the back end.
        public static let recordChanged = Code(rawValue: "record-changed")
        /// The back end no longer has the record.
        public static let recordGone = Code(rawValue: "record-gone")
        /// The back end accepted the entry with changes; the entry has the back end's values.
        public static let altered = Code(rawValue: "altered")
        /// The back end stores a rounded duration; the entry keeps the one that the person entered.
        public static let rounded = Code(rawValue: "rounded")
        /// The id belongs to another person's entry.
        public static let idTaken = Code(rawValue: "id-taken")

        /// The codes that the server writes.
        public static let all = [
            problem, refused, withdrawn, recordChanged, recordGone, altered, rounded, idTaken,
        ]
    }

    /// Returns a time for a new line that is later than the newest line's, even if the clock is behind: the newest line
    /// has the current status.
    public static func time(_ now: Timestamp, after newest: Timestamp?) -> Timestamp {
        guard let newest, newest >= now else { return now }
        return Timestamp(millisecondsSinceEpoch: newest.millisecondsSinceEpoch + 1)
    }

    /// Describes the first inconsistency between an entry and its log: the newest line must have the entry's status and
    /// `statusAt`. `lines` are all lines of the entry.
    ///
    /// - Returns: `nil` if they are consistent.
    public static func objection(to lines: [TimeEntryStatus], of entry: TimeEntry) -> String? {
        guard let newest = lines.max(by: { $0.timestamp < $1.timestamp }) else { return "the log has no lines" }
        if lines.contains(where: { $0.timestamp == newest.timestamp && $0.status != newest.status }) {
            return "the log has two newest lines, of \(newest.timestamp)"
        }
        if newest.status != entry.status { return "the newest line's status is \(newest.status.rawValue)" }
        return newest.timestamp == entry.statusAt
            ? nil : "the newest line's time is \(newest.timestamp), not \(entry.statusAt?.description ?? "null")"
    }

    /// Creates a line of the log.
    public init(entry: UUID, status: EntryStatus, timestamp: Timestamp, message: String? = nil, code: Code? = nil) {
        self.entry = entry
        self.status = status
        self.timestamp = timestamp
        self.message = message
        self.code = code
    }
}

extension TimeEntryStatus: KindFields {
    enum CodingKeys: String, CodingKey, CaseIterable {
        case entry, status, timestamp, message, code
    }

    /// The row of ``Kind/timeEntryStatus``.
    package static let row = KindRow(Self.self, CodingKeys.self, in: [.user])
}
