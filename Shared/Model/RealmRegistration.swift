/// Fields of a `Realms` object: a user's realm and its initialization state.
///
/// One per user, in the realm `/users`. When one is created, `realm-initializer` fills the realm.
public struct RealmRegistration: Codable, Equatable, Sendable {
    /// The user's id, which is the e-mail address.
    public var userId: String
    /// The path of the user's personal realm.
    public var path: RealmPath
    /// Whether trees, contexts, templates and existing entries are written; false if absent. The first model
    /// has `is_initialized`.
    public var isInitialized: Bool

    /// Creates the fields of a user's realm.
    public init(userId: String, path: RealmPath, isInitialized: Bool = false) {
        self.userId = userId
        self.path = path
        self.isInitialized = isInitialized
    }
}

extension RealmRegistration: KindFields {
    enum CodingKeys: String, CodingKey, CaseIterable {
        case userId, path, isInitialized
    }

    package var objection: String? { EmailAddress.objection(to: userId, of: "userId") }

    /// The row of ``Kind/realms``.
    package static let row = KindRow(
        Self.self, CodingKeys.self, in: [.users], route: Route(to: Topics.realm, from: [.users]))
}
