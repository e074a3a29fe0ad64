public import Essentials
public import FoundationEssentials

/// The reason why sharing an item ended.
public enum EndReason: String, Codable, CaseIterable, Sendable {
    /// The owner deleted the ``SharedItem`` or the ``Share``.
    case cancelled
    /// The owner deleted the item.
    case itemDeleted = "item-deleted"
    /// The recipient deleted the copy or the ``Share``.
    case removed
    /// The ``Share`` was deleted, and no person is recorded as the author of that.
    case shareEnded = "share-ended"
}

/// Fields of a `DeletedObject` object: the last content of an ``Appointment``, a ``Note`` or a ``SharedItem`` that was
/// deleted from a person's own realm, under the same id.
///
/// The server writes it in the transaction of the deletion, and removes it when the object is put again or when the
/// environment's retention time is over. Its person restores the object with a put whose ``Mutation/restores`` is true,
/// or deletes the `DeletedObject`.
public struct DeletedObject: Codable, Equatable, Sendable {
    /// The kinds of objects whose content is retained.
    public enum Source: String, Codable, CaseIterable, Sendable {
        /// An ``Appointment``.
        case appointment = "Appointment"
        /// A ``Note``.
        case note = "Note"
        /// A ``SharedItem``.
        case sharedItem = "SharedItem"
    }

    /// The kind of the deleted object.
    public var kind: Source
    /// The time of the deletion, by the server's clock.
    public var deletedAt: Timestamp
    /// The reason why sharing ended; only of a `SharedItem`.
    public var reason: EndReason?
    /// ``Appointment/when`` of an appointment.
    public var when: Timestamp?
    /// ``Appointment/durationMinutes`` of an appointment.
    public var durationMinutes: Int?
    /// ``Appointment/why`` of an appointment.
    public var why: String?
    /// ``Note/title`` of a note.
    public var title: String?
    /// ``Note/body`` of a note.
    public var body: String?
    /// ``Note/isTask`` of a note.
    public var isTask: Bool?
    /// ``Note/isDone`` of a note.
    public var isDone: Bool?
    /// ``SharedItem/kind`` of a shared item.
    public var itemKind: SharedItem.ItemKind?
    /// ``SharedItem/item`` of a shared item.
    public var item: UUID?
    /// ``SharedItem/recipient`` of a shared item.
    public var recipient: UUID?
    /// ``SharedItem/since`` of a shared item.
    public var since: Timestamp?

    private init(_ kind: Source, _ deletedAt: Timestamp) {
        self.kind = kind
        self.deletedAt = deletedAt
    }

    /// Creates the fields for a deleted appointment.
    public init(_ appointment: Appointment, deletedAt: Timestamp) {
        self.init(.appointment, deletedAt)
        when = appointment.when
        durationMinutes = appointment.durationMinutes
        why = appointment.why
    }

    /// Creates the fields for a deleted note.
    public init(_ note: Note, deletedAt: Timestamp) {
        self.init(.note, deletedAt)
        title = note.title
        body = note.body
        isTask = note.isTask
        isDone = note.isDone
    }

    /// Creates the fields for a shared item that ended.
    public init(_ link: SharedItem, deletedAt: Timestamp, reason: EndReason) {
        self.init(.sharedItem, deletedAt)
        self.reason = reason
        itemKind = link.kind
        item = link.item
        recipient = link.recipient
        since = link.since
    }

    /// The appointment to put in order to restore it; `nil` if this is none.
    public var appointment: Appointment? {
        guard kind == .appointment, let when, let durationMinutes, let why else { return nil }
        return Appointment(when: when, durationMinutes: durationMinutes, why: why)
    }

    /// The note to put in order to restore it; `nil` if this is none.
    public var note: Note? {
        guard kind == .note, let title else { return nil }
        return Note(title: title, body: body ?? "", isTask: isTask ?? false, isDone: isDone ?? false)
    }

    /// The shared item to put in order to share again; `nil` if this is none.
    public var sharedItem: SharedItem? {
        guard kind == .sharedItem, let itemKind, let item, let recipient else { return nil }
        return SharedItem(kind: itemKind, item: item, recipient: recipient, since: since)
    }
}

extension DeletedObject {
    /// Creates the fields for an object that is deleted from a person's own realm by its person or an integration.
    ///
    /// - Returns: `nil` if the content of this kind is not retained, or cannot be read.
    package init?(_ kind: Kind, _ fields: [UInt8], deletedAt: Timestamp) {
        guard let source = Source(rawValue: kind.rawValue), let object = try? JSONObject(fields) else { return nil }
        switch source {
        case .appointment:
            guard let appointment = try? object.decoded(as: Appointment.self) else { return nil }
            self.init(appointment, deletedAt: deletedAt)
        case .note:
            guard let note = try? object.decoded(as: Note.self) else { return nil }
            self.init(note, deletedAt: deletedAt)
        case .sharedItem:
            guard let link = try? object.decoded(as: SharedItem.self) else { return nil }
            self.init(link, deletedAt: deletedAt, reason: .cancelled)
        }
    }
}

extension Kind {
    /// Whether the content of deleted objects is retained, so that their person can restore them.
    package var isRestorable: Bool { DeletedObject.Source(rawValue: rawValue) != nil }
}

extension DeletedObject: KindFields {
    enum CodingKeys: String, CodingKey, CaseIterable {
        case kind, deletedAt, reason, when, durationMinutes, why, title, body, isTask, isDone, itemKind, item,
            recipient, since
    }

    /// The row of ``Kind/deletedObject``.
    package static let row = KindRow(Self.self, CodingKeys.self, in: [.user], ids: .natural)
}

/// Fields of an `EndedShare` object: an item that another person shared with this one, and no longer does. In the
/// recipient's own realm.
///
/// `share-fan-out` writes it when it removes the copy, except when the recipient removed it. An appointment keeps all
/// its fields, so that past ones stay in the recipient's calendar; a note keeps its title. It is removed when the item
/// is shared again or when the environment's retention time is over; the recipient may delete it.
public struct EndedShare: Codable, Equatable, Sendable {
    /// The id of the `Person` who owned the item.
    public var owner: UUID
    /// The item's kind.
    public var kind: SharedItem.ItemKind
    /// The item's id.
    public var item: UUID
    /// ``Appointment/why`` of an appointment, ``Note/title`` of a note, as last shared.
    public var title: String
    /// ``Appointment/when`` of an appointment.
    public var when: Timestamp?
    /// ``Appointment/durationMinutes`` of an appointment.
    public var durationMinutes: Int?
    /// The time since which the item was shared, if known.
    public var since: Timestamp?
    /// The time at which the copy was removed, by the server's clock.
    public var endedAt: Timestamp
    /// The reason; never ``EndReason/removed``.
    public var reason: EndReason

    /// Creates the fields of an ended share.
    public init(
        owner: UUID, kind: SharedItem.ItemKind, item: UUID, title: String, when: Timestamp? = nil,
        durationMinutes: Int? = nil, since: Timestamp? = nil, endedAt: Timestamp, reason: EndReason
    ) {
        self.owner = owner
        self.kind = kind
        self.item = item
        self.title = title
        self.when = when
        self.durationMinutes = durationMinutes
        self.since = since
        self.endedAt = endedAt
        self.reason = reason
    }

    /// Returns the id: the owner's first eight bytes, then the item's last eight.
    public static func id(of owner: UUID, item: UUID) -> UUID { owner.paired(with: item) }
}

extension EndedShare: KindFields {
    enum CodingKeys: String, CodingKey, CaseIterable {
        case owner, kind, item, title, when, durationMinutes, since, endedAt, reason
    }

    /// The row of ``Kind/endedShare``.
    package static let row = KindRow(Self.self, CodingKeys.self, in: [.user], ids: .natural)
}
