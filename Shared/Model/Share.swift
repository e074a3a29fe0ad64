public import FoundationEssentials

/// Fields of a `Share` object: one person shares items with another.
///
/// It says who the two are of the realm ``RealmPath/share(_:)`` under its own id, and is in that realm. Copies of it in
/// both people's own realms, made by the server, say which shares they have.
public struct Share: Codable, Equatable, Sendable {
    /// The id of the `Person` whose items they are.
    public var owner: UUID
    /// The id of the `Person` who may read them.
    public var recipient: UUID

    /// A share.
    public init(owner: UUID, recipient: UUID) {
        self.owner = owner
        self.recipient = recipient
    }
}

extension Share: KindFields {
    enum CodingKeys: String, CodingKey, CaseIterable {
        case owner, recipient
    }

    /// The row of ``Kind/share``.
    package static let row = KindRow(Self.self, CodingKeys.self, in: [.user, .share], permissions: .share)
}
