public import Essentials
public import FoundationEssentials

/// Fields of a `TimeEntryStatus` object: one line of an entry's status log (the first model's `statusLog`).
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

    /// What a line says beside its status. Others may be added: who does not know one shows the message.
    public struct Code: RawRepresentable, Codable, Hashable, Sendable {
        /// The word in JSON.
        public let rawValue: String
        /// Any word is a code.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// The entry is not complete, or contradicts itself or what may be reported on.
        public static let problem = Code(rawValue: "problem")
        /// The back end refused it, or is known not to take it.
        public static let refused = Code(rawValue: "refused")
        /// The device took the submission back, and the record is gone.
        public static let withdrawn = Code(rawValue: "withdrawn")
        /// Somebody changed the record in the back end.
        public static let recordChanged = Code(rawValue: "record-changed")
        /// The back end no longer has the record.
        public static let recordGone = Code(rawValue: "record-gone")
        /// The back end accepted the entry and altered it; the entry has the back end's values.
        public static let altered = Code(rawValue: "altered")
        /// The back end keeps a rounded length; the entry keeps the one that its person entered.
        public static let rounded = Code(rawValue: "rounded")
        /// The id is that of another person's entry.
        public static let idTaken = Code(rawValue: "id-taken")

        /// Those that the server writes.
        public static let all = [
            problem, refused, withdrawn, recordChanged, recordGone, altered, rounded, idTaken,
        ]
    }

    /// The time of a line that follows one of that time, whatever the clocks say: the newest line tells the status.
    public static func time(_ now: Timestamp, after newest: Timestamp?) -> Timestamp {
        guard let newest, newest >= now else { return now }
        return Timestamp(millisecondsSinceEpoch: newest.millisecondsSinceEpoch + 1)
    }

    /// What is wrong with an entry's log: its newest line tells the entry's status and `statusAt`.
    ///
    /// - Parameter lines: All of the entry's.
    /// - Returns: `nil` when nothing is.
    public static func objection(to lines: [TimeEntryStatus], of entry: TimeEntry) -> String? {
        guard let newest = lines.max(by: { $0.timestamp < $1.timestamp }) else { return "it has no line" }
        if lines.contains(where: { $0.timestamp == newest.timestamp && $0.status != newest.status }) {
            return "two newest lines, of \(newest.timestamp)"
        }
        if newest.status != entry.status { return "its newest line says \(newest.status.rawValue)" }
        return newest.timestamp == entry.statusAt
            ? nil : "its newest line is of \(newest.timestamp), and not of \(entry.statusAt?.description ?? "null")"
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

extension TimeEntryStatus: KindFields {
    enum CodingKeys: String, CodingKey, CaseIterable {
        case entry, status, timestamp, message, code
    }

    /// The row of ``Kind/timeEntryStatus``.
    package static let row = KindRow(Self.self, CodingKeys.self, in: [.user])
}
