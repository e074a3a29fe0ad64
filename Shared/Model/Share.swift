public import Essentials
public import FoundationEssentials

/// Fields of a `Share` object: a relation in which one person shares items with another.
///
/// It defines the owner and the recipient of the realm ``RealmPath/share(_:)`` with its own id, and is stored there;
/// both people's own realms have copies that list their shares. `share-fan-out` creates all of them for the first
/// ``SharedItem`` from the owner to the recipient; either person ends the share by a delete. Its id is derived from
/// both people (``id(of:with:)``): there is one per pair.
public struct Share: Codable, Equatable, Sendable {
    /// The id of the `Person` who owns the items.
    public var owner: UUID
    /// The id of the `Person` who can read them.
    public var recipient: UUID
    /// The time at which the first item was shared.
    public var since: Timestamp?
    /// The id of the `Person` who ended the share: in the copy of their own realm, until `share-fan-out` removes it.
    public var endedBy: UUID?

    /// Creates the fields of a share.
    public init(owner: UUID, recipient: UUID, since: Timestamp? = nil, endedBy: UUID? = nil) {
        self.owner = owner
        self.recipient = recipient
        self.since = since
        self.endedBy = endedBy
    }

    /// Returns the id of a share: the owner's first eight bytes, then the recipient's last eight.
    public static func id(of owner: UUID, with recipient: UUID) -> UUID { owner.paired(with: recipient) }

    /// Returns the range of the ids of all shares of an owner.
    public static func ids(of owner: UUID) -> ClosedRange<UUID> { owner.pairs }
}

extension Share: KindFields {
    enum CodingKeys: String, CodingKey, CaseIterable {
        case owner, recipient, since, endedBy
    }

    /// The row of ``Kind/share``.
    package static let row = KindRow(
        Self.self, CodingKeys.self, in: [.user, .share], ids: .natural, bytesMax: Kind.commonBytesMax,
        permissions: .share, route: Route(to: Topics.share, from: [.share]))
}

/// Fields of a `SharedItem` object: one item that a person shares with another. In the person's own realm.
///
/// Its id is derived from the item and the recipient (``id(of:with:)``): there is one per pair. While it exists,
/// `share-fan-out` maintains a copy of the item for the recipient; a delete removes the copy. An item is shared while
/// one of its `SharedItem`s exists without a ``problem``: their ids are in ``ids(of:)``.
public struct SharedItem: Codable, Equatable, Sendable {
    /// The kinds of items that can be shared.
    public enum ItemKind: String, Codable, CaseIterable, Sendable {
        /// An ``Appointment``.
        case appointment = "Appointment"
        /// A ``Note``.
        case note = "Note"
    }

    /// The item's kind.
    public var kind: ItemKind
    /// The item's id, in the same realm.
    public var item: UUID
    /// The id of the `Person` with whom it is shared.
    public var recipient: UUID
    /// The time at which it was shared.
    public var since: Timestamp?
    /// The reason why the recipient gets no copy; written by the server.
    public var problem: String?

    /// Creates the fields of a shared item.
    public init(kind: ItemKind, item: UUID, recipient: UUID, since: Timestamp? = nil, problem: String? = nil) {
        self.kind = kind
        self.item = item
        self.recipient = recipient
        self.since = since
        self.problem = problem
    }

    /// Returns the id of a shared item: the item's first eight bytes, then the recipient's last eight.
    public static func id(of item: UUID, with recipient: UUID) -> UUID { item.paired(with: recipient) }

    /// Returns the range of the ids of all shared items of an item: one for each recipient.
    public static func ids(of item: UUID) -> ClosedRange<UUID> { item.pairs }
}

extension SharedItem: KindFields {
    enum CodingKeys: String, CodingKey, CaseIterable {
        case kind, item, recipient, since, problem
    }

    /// The names of the fields that the person writes.
    package static let ownerNames = [CodingKeys.kind, .item, .recipient, .since].map(\.stringValue)

    /// The row of ``Kind/sharedItem``.
    package static let row = KindRow(
        Self.self, CodingKeys.self, in: [.user], ids: .natural, bytesMax: Kind.commonBytesMax,
        route: Route(to: Topics.share, from: [.user]))
}
