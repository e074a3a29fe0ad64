/// A row of a back end's list that cannot be read: its values have other types than the list's rows have, or make no
/// sense. It is there, so nothing may be concluded from its absence among those that were read.
public struct UnreadableRecord: Hashable, Sendable, CustomStringConvertible {
    /// The list it is in, as the back end calls it.
    public var list: String
    /// The back end's id of it; `nil` when that cannot be read either.
    public var id: String?
    /// Why it cannot be read, for an operator.
    public var reason: String

    /// An unreadable record.
    public init(list: String, id: String?, reason: String) {
        self.list = list
        self.id = id
        self.reason = reason
    }

    /// In words, for an operator.
    public var description: String { "\(list) \(id ?? "without a readable id"): \(reason)" }
}

/// The records of a person on some days: what ``TimeBackend/records(of:from:through:)`` reads.
public struct BackendRecords: Equatable, Sendable {
    /// Cancelled and superseded ones left out.
    public var entries: [BackendEntry]
    /// Records that are there as well.
    public var unreadable: [UnreadableRecord]

    /// Records.
    public init(entries: [BackendEntry], unreadable: [UnreadableRecord] = []) {
        self.entries = entries
        self.unreadable = unreadable
    }

    /// All records, for a caller that concludes something from what is missing.
    ///
    /// - Throws: ``BackendError/notProcessed(reason:retryAfter:)`` when one cannot be read.
    public func whole() throws(BackendError) -> [BackendEntry] {
        guard let first = unreadable.first else { return entries }
        throw .notProcessed(reason: "a record cannot be read: \(first)", retryAfter: nil)
    }

    /// The records that carry a marker: those that can be read, or none, if all can be read.
    ///
    /// - Throws: ``BackendError/notProcessed(reason:retryAfter:)`` when none is found and one cannot be read, which may
    ///   be it.
    public func marked(_ marker: String) throws(BackendError) -> [BackendEntry] {
        let found = entries.filter { $0.marker == marker }
        return found.isEmpty ? try whole().filter { $0.marker == marker } : found
    }
}
