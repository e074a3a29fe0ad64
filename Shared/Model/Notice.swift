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
        /// Another person shares an item with the person.
        public static let itemShared = Code(rawValue: "item-shared")

        /// A ``FieldTask`` was assigned to the person or, without an assignee, to a team of the person.
        public static let taskAssigned = Code(rawValue: "task-assigned")
        /// The title, due date, location or team of a task of the person was changed.
        public static let taskChanged = Code(rawValue: "task-changed")
        /// A task is no longer assigned to the person or to a team of the person.
        public static let taskRemoved = Code(rawValue: "task-removed")
        /// The due date of a task of the person has passed.
        public static let taskOverdue = Code(rawValue: "task-overdue")

        /// The person's ``TimeEntry`` was rejected by an approver.
        public static let entryRejected = Code(rawValue: "entry-rejected")
        /// The person's entry cannot be submitted as it is, or a change of it was refused.
        public static let entryInvalid = Code(rawValue: "entry-invalid")
        /// The person's entry was changed in the back end.
        public static let entryChanged = Code(rawValue: "entry-changed")

        /// The codes that the server writes.
        public static let all = [
            defectAssigned, defectModified, shareCancelled, itemDeleted, itemShared, taskAssigned, taskChanged,
            taskRemoved, taskOverdue, entryRejected, entryInvalid, entryChanged,
        ]
    }

    /// The id of the object that the notice concerns; it may have been deleted. `nil` if there is none. It is in the
    /// same realm, except a task (in the realm of its team) and a shared item (in the realm of its ``Share``).
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

extension Notice.Code {
    /// The subject of a notice. A person's retention limit applies to each sort, so that many of one displace no other.
    package enum Sort: CaseIterable, Sendable { case task, entry, share, defect, other }

    /// The sort of the code, by its first part.
    package var sort: Sort {
        switch rawValue.prefix(while: { $0 != "-" }) {
        case "task": .task
        case "entry": .entry
        case "item", "share": .share
        case "defect": .defect
        default: .other
        }
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
