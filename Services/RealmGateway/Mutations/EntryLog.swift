import Essentials
import FoundationEssentials
import Model

/// What a device's write of an entry means for the entry's status log.
///
/// The newest line tells the status, always: so an entry begins with a line, and each change of its status is one.
/// Those of the other writers come with their decisions.
enum EntryLog {
    /// The line that a write adds; `nil` when the status stays.
    ///
    /// - Parameters:
    ///   - before: The entry's fields as they are stored; `nil` when it is new.
    ///   - after: As they are to be stored, with what ``fields(with:)`` says.
    /// - Throws: ``JSONProblem`` when one of them cannot be read.
    static func line(
        of entry: UUID, before: [UInt8]?, after: [UInt8], now: Timestamp
    ) throws(JSONProblem) -> TimeEntryStatus? {
        let status = status(try JSONObject(after))
        guard let before else { return TimeEntryStatus(entry: entry, status: status, timestamp: now) }
        let stored = try JSONObject(before)
        if self.status(stored) == status { return nil }
        let newest = stored.text(of: EntryField.statusAt.rawValue).flatMap { Timestamp($0) }
        return TimeEntryStatus(
            entry: entry, status: status, timestamp: TimeEntryStatus.time(now, after: newest))
    }

    /// The fields of the entry that agree with its new line.
    static func fields(with line: TimeEntryStatus) -> [UInt8] {
        Array("{\"\(EntryField.statusAt.rawValue)\":\"\(line.timestamp)\"}".utf8)
    }

    private static func status(_ fields: JSONObject) -> EntryStatus {
        fields.text(of: EntryField.status.rawValue).flatMap { EntryStatus(rawValue: $0) } ?? .draft
    }
}
