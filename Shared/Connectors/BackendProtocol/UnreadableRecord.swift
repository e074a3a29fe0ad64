/// A row of a back end's list that cannot be decoded: its values have unexpected types or are invalid.
///
/// The row exists, so its absence among the decoded rows proves nothing.
public struct UnreadableRecord: Hashable, Sendable, CustomStringConvertible {
    /// The back end's name of the list.
    public var list: String
    /// The back end's id of the row; `nil` if the id cannot be decoded either.
    public var id: String?
    /// The reason, for an operator.
    public var reason: String

    /// Creates a description of an unreadable row.
    public init(list: String, id: String?, reason: String) {
        self.list = list
        self.id = id
        self.reason = reason
    }

    /// The list, the id and the reason.
    public var description: String { "\(list) \(id ?? "without a readable id"): \(reason)" }
}

/// The records of a person on some days: the result of ``TimeBackend/records(of:from:through:)``.
public struct BackendRecords: Equatable, Sendable {
    /// The decoded live records, without cancelled and superseded ones.
    public var entries: [BackendEntry]
    /// Records that exist and could not be decoded.
    public var unreadable: [UnreadableRecord]

    /// Creates a result.
    public init(entries: [BackendEntry], unreadable: [UnreadableRecord] = []) {
        self.entries = entries
        self.unreadable = unreadable
    }

    /// Returns all records, for a caller that draws conclusions from absent records.
    ///
    /// - Throws: ``BackendError/notProcessed(reason:retryAfter:)`` if a record is unreadable.
    public func completeEntries() throws(BackendError) -> [BackendEntry] {
        guard let first = unreadable.first else { return entries }
        throw .notProcessed(reason: "a record cannot be read: \(first)", retryAfter: nil)
    }

    /// Returns the records that carry a marker.
    ///
    /// - Throws: ``BackendError/notProcessed(reason:retryAfter:)`` if no decoded record carries the marker and an
    ///   undecodable record may.
    public func entries(withMarker marker: String) throws(BackendError) -> [BackendEntry] {
        let matches = entries.filter { $0.marker == marker }
        return matches.isEmpty ? try completeEntries().filter { $0.marker == marker } : matches
    }
}
