public import Essentials

/// Fields of a `SeenRecord` object: the back end's record of one entry as last polled.
///
/// It has the entry's id and is in a services' realm, ``RealmPath/seen(_:)``. The poller writes it when the record
/// differs from the last poll; the submitter decides its effect on the entry. A tombstone means that the back end no
/// longer has the record.
public struct SeenRecord: Codable, Equatable, Sendable {
    /// The record's id in the back end.
    public var backendId: String
    /// The marker in the record, if Fieldpost created it.
    public var marker: String?
    /// The day on which the time is registered.
    public var day: Day
    /// The duration in seconds.
    public var durationSeconds: Int
    /// The text without the marker.
    public var text: String?
    /// The record's status as adapters name it: `released`, `approved` and so on.
    public var status: String
    /// The node's `referenceId` by context name.
    public var references: [String: String]
    /// The back end's message about the record, for display.
    public var message: String?
    /// The record's version, if the back end has versions. Only compared for equality.
    public var version: String?
    /// The run that reported the record again because the entry still differed from it.
    public var toldRun: Int64?

    /// Creates the fields of a record.
    public init(
        backendId: String, marker: String?, day: Day, durationSeconds: Int, text: String?, status: String,
        references: [String: String], message: String? = nil, version: String? = nil,
        toldRun: Int64? = nil
    ) {
        self.backendId = backendId
        self.marker = marker
        self.day = day
        self.durationSeconds = durationSeconds
        self.text = text
        self.status = status
        self.references = references
        self.message = message
        self.version = version
        self.toldRun = toldRun
    }
}

extension SeenRecord: KindFields {
    enum CodingKeys: String, CodingKey, CaseIterable {
        case backendId, marker, day, durationSeconds, text, status, references, message, version, toldRun
    }

    /// The row of ``Kind/seenRecord``.
    package static let row = KindRow(
        Self.self, CodingKeys.self, in: [], route: Route(to: Topics.entry, from: [.system]))
}
