public import Essentials
public import FoundationEssentials

/// Fields of a `Notice` object: a notification for a person. In the person's own realm.
///
/// The server creates it; the person marks it as read or deletes it. A deleted notice is not recreated.
public struct Notice: Codable, Equatable, Sendable {
    /// The type of a notice, for programs. Codes may be added; a program displays the text if it does not support the
    /// code.
    public struct Code: RawRepresentable, Codable, Hashable, Sendable {
        /// The code in JSON.
        public let rawValue: String
        /// Creates a code from any text.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// A ``Defect`` was assigned to the person.
        public static let defectAssigned = Code(rawValue: "defect-assigned")
        /// Another user changed a ``Defect`` that is assigned to the person.
        public static let defectModified = Code(rawValue: "defect-modified")

        /// The owner of an item no longer shares it with the person, or has ended the whole ``Share``.
        public static let shareCancelled = Code(rawValue: "share-cancelled")
        /// The owner of an item that was shared with the person deleted it.
        public static let itemDeleted = Code(rawValue: "item-deleted")

        /// The codes that the server writes.
        public static let all = [defectAssigned, defectModified, shareCancelled, itemDeleted]
    }

    /// The id of the object that the notice concerns, in the same realm; it may have been deleted. `nil` if there is
    /// none.
    public var about: UUID?
    /// The type of the notice, for programs.
    public var code: Code
    /// The message for display.
    public var text: String
    /// The time at which the server detected the event.
    public var timestamp: Timestamp
    /// Whether the person has read it; false if absent.
    public var isRead: Bool

    /// Creates the fields of a notice.
    public init(about: UUID?, code: Code, text: String, timestamp: Timestamp, isRead: Bool = false) {
        self.about = about
        self.code = code
        self.text = text
        self.timestamp = timestamp
        self.isRead = isRead
    }
}

extension Notice: KindFields {
    enum CodingKeys: String, CodingKey, CaseIterable {
        case about, code, text, timestamp, isRead
    }

    /// The names of the fields that the person writes.
    package static let ownerNames = [CodingKeys.isRead.stringValue]

    /// The row of ``Kind/notice``.
    package static let row = KindRow(
        Self.self, CodingKeys.self, in: [.user], bytesMax: Kind.commonBytesMax,
        route: Route(to: Topics.notice, from: [.user]))
}
