public import Essentials
public import FoundationEssentials

/// Fields of a `Share` object: one person shares items with another.
///
/// It says who the two are of the realm ``RealmPath/share(_:)`` under its own id, and is in that realm. Copies of it in
/// both people's own realms say which shares they have. `share-fan-out` makes all of them, of the first
/// ``SharedItem`` between the two; either of them ends it by a delete. Its id is made of both (``id(of:with:)``): there
/// is one per pair.
public struct Share: Codable, Equatable, Sendable {
    /// The id of the `Person` whose items they are.
    public var owner: UUID
    /// The id of the `Person` who may read them.
    public var recipient: UUID
    /// When the first of its items was shared.
    public var since: Timestamp?

    /// A share.
    public init(owner: UUID, recipient: UUID, since: Timestamp? = nil) {
        self.owner = owner
        self.recipient = recipient
        self.since = since
    }

    /// The id of what a person shares with another: the owner's first eight bytes, then the recipient's last eight.
    public static func id(of owner: UUID, with recipient: UUID) -> UUID { owner.paired(with: recipient) }

    /// The ids among which all shares of an owner are.
    public static func ids(of owner: UUID) -> ClosedRange<UUID> { owner.pairs }
}

extension Share: KindFields {
    enum CodingKeys: String, CodingKey, CaseIterable {
        case owner, recipient, since
    }

    /// The row of ``Kind/share``.
    package static let row = KindRow(
        Self.self, CodingKeys.self, in: [.user, .share], ids: .natural, bytesMax: Kind.commonBytesMax,
        permissions: .share, route: Route(to: Topics.share, from: [.share]))
}

/// Fields of a `SharedItem` object: its person shares one of their items with somebody. In the person's own realm.
///
/// Its id is made of the item's and the recipient's (``id(of:with:)``): there is one per pair. While it is there the
/// recipient has a copy of the item, which `share-fan-out` keeps; a delete takes that away.
public struct SharedItem: Codable, Equatable, Sendable {
    /// What can be shared.
    public enum ItemKind: String, Codable, CaseIterable, Sendable {
        /// An ``Appointment``.
        case appointment = "Appointment"
        /// A ``Note``.
        case note = "Note"
    }

    /// What the item is.
    public var kind: ItemKind
    /// The id of the item, in the same realm.
    public var item: UUID
    /// The id of the `Person` it is shared with.
    public var recipient: UUID
    /// Since when.
    public var since: Timestamp?
    /// Why the recipient gets no copy of it; written by the server.
    public var problem: String?

    /// A shared item.
    public init(kind: ItemKind, item: UUID, recipient: UUID, since: Timestamp? = nil, problem: String? = nil) {
        self.kind = kind
        self.item = item
        self.recipient = recipient
        self.since = since
        self.problem = problem
    }

    /// The id of the sharing of an item with a person: the item's first eight bytes, then the recipient's last eight.
    public static func id(of item: UUID, with recipient: UUID) -> UUID { item.paired(with: recipient) }

    /// The ids among which all sharings of an item are.
    public static func ids(of item: UUID) -> ClosedRange<UUID> { item.pairs }
}

extension SharedItem: KindFields {
    enum CodingKeys: String, CodingKey, CaseIterable {
        case kind, item, recipient, since, problem
    }

    /// The names of the fields that its person writes.
    package static let ownerNames = [CodingKeys.kind, .item, .recipient, .since].map(\.stringValue)

    /// The row of ``Kind/sharedItem``.
    package static let row = KindRow(
        Self.self, CodingKeys.self, in: [.user], ids: .natural, bytesMax: Kind.commonBytesMax,
        route: Route(to: Topics.share, from: [.user]))
}
