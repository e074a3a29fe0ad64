import Essentials
import FoundationEssentials
import Model

/// The changes of an entry's status log that a device's write causes.
///
/// The newest line always has the entry's status: creating an entry, and each change of its status, adds a line. The
/// other writers add lines for their own changes.
enum EntryLog {
    /// Returns the line that a write adds; `nil` if the status is unchanged.
    ///
    /// - Parameters:
    ///   - before: The stored fields; `nil` for a new entry.
    ///   - after: The fields to store, to which the caller adds those of ``fields(with:)``.
    /// - Throws: ``JSONError`` if the fields cannot be parsed.
    static func line(
        of entry: UUID, before: [UInt8]?, after: [UInt8], now: Timestamp
    ) throws(JSONError) -> TimeEntryStatus? {
        let status = status(try JSONObject(after))
        guard let before else { return TimeEntryStatus(entry: entry, status: status, timestamp: now) }
        let stored = try JSONObject(before)
        if self.status(stored) == status { return nil }
        let newest = stored.text(of: EntryField.statusAt.rawValue).flatMap { Timestamp($0) }
        return TimeEntryStatus(
            entry: entry, status: status, timestamp: TimeEntryStatus.time(now, after: newest))
    }

    /// Returns the entry's fields that depend on the new line.
    static func fields(with line: TimeEntryStatus) -> [UInt8] {
        Array("{\"\(EntryField.statusAt.rawValue)\":\"\(line.timestamp)\"}".utf8)
    }

    private static func status(_ fields: JSONObject) -> EntryStatus {
        fields.text(of: EntryField.status.rawValue).flatMap { EntryStatus(rawValue: $0) } ?? .draft
    }
}
