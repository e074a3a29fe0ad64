public import Essentials

/// Fields of a `SeenRecord` object: what a back end was last seen to hold of one entry.
///
/// It has the entry's id, and is in a realm of the services, ``RealmPath/seen(_:)``. The poller writes it when it
/// differs from what was seen before; what it means for the entry is decided by the submitter. A tombstone says that
/// the back end no longer has the record.
public struct SeenRecord: Codable, Equatable, Sendable {
    /// The back end's id of the record.
    public var backendId: String
    /// The marker it carries, when it came from Fieldpost.
    public var marker: String?
    /// The day the time is registered on.
    public var day: Day
    /// The length in seconds.
    public var durationSeconds: Int
    /// The text without the marker.
    public var text: String?
    /// What has become of the record: `released`, `approved` and so on, in the words of adapters.
    public var status: String
    /// Context name → the node's `referenceId`.
    public var references: [String: String]
    /// What the back end says about it, for a person.
    public var message: String?
    /// Tells the record's states apart, in back ends that have such a thing. It is compared for equality alone.
    public var version: String?
    /// The run that told it again, because the entry still said something else.
    public var toldRun: Int64?

    /// A record.
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
