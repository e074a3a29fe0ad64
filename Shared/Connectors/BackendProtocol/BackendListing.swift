public import Essentials
import Model

/// The records of many people on some days: the result of ``TimeBackend/listing(of:from:through:)``.
///
/// A listing is complete, so a caller may detect that a record is missing. A record can still be skipped if it moves
/// from an unread day to one that was already read. The caller therefore verifies a missing record with
/// ``TimeBackend/entries(of:from:through:)`` before it treats the record as deleted.
public struct BackendListing: Equatable, Sendable {
    /// The first day that was read. The last one is the last requested day.
    public var from: Day
    /// The live records on these days by e-mail address, without cancelled and superseded ones. A person without
    /// records may be absent.
    public var entries: [String: [BackendEntry]]
    /// E-mail addresses of people whose records could be read only in part, because their references are insufficient
    /// or a record has invalid values. The records in ``entries`` are valid; the absence of others proves nothing.
    public var unreadable: Set<String>
    /// Records that could not be decoded: those of ``unreadable`` people, and those without a readable owner.
    public var unreadableRecords: [UnreadableRecord]

    /// Creates a listing of the days from `from`.
    public init(
        from: Day, entries: [String: [BackendEntry]] = [:], unreadable: Set<String> = [],
        unreadableRecords: [UnreadableRecord] = []
    ) {
        self.from = from
        self.entries = entries
        self.unreadable = unreadable
        self.unreadableRecords = unreadableRecords
    }
}
