import Essentials
public import FoundationEssentials

/// Fields of a `Person` object: what everybody of an environment may know of a person. One per person, in `/common`.
///
/// The server makes it when the person is invited or first logs in; its id is the person's id wherever one is named.
public struct Person: Codable, Equatable, Sendable {
    /// The person's name as people write it; the person's own to write.
    public var name: String
    /// The blob of the person's picture; the person's own to write.
    public var avatar: UUID?
    /// What the person is; written by managers and admins, never by the person.
    public var role: Role

    /// A person.
    public init(name: String = "", avatar: UUID? = nil, role: Role = .worker) {
        self.name = name
        self.avatar = avatar
        self.role = role
    }

    /// Reads the fields; without a role the person is a worker.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        name = try container.decodeIfPresent(String.self, forKey: .name) ?? ""
        avatar = try container.decodeIfPresent(UUID.self, forKey: .avatar)
        role = try container.decodeIfPresent(Role.self, forKey: .role) ?? .worker
    }
}

extension Person: KindFields {
    enum CodingKeys: String, CodingKey, CaseIterable {
        case name, avatar, role
    }

    package var objection: String? { name.isEmpty ? nil : DisplayName.objection(to: name, of: "name") }

    /// The row of ``Kind/person``.
    package static let row = KindRow(
        Self.self, CodingKeys.self, in: [.common], ids: .natural, bytesMax: Kind.commonBytesMax, permissions: .person,
        route: Route(to: Topics.team, from: [.common]))
}

/// Fields of a `PersonLookup` object: what a person wants to be found by. In `/common`, under the person's id.
public struct PersonLookup: Codable, Equatable, Sendable {
    /// The name to be found by.
    public var name: String
    /// The person's own e-mail address.
    public var email: String

    /// An entry to be found by.
    public init(name: String, email: String) {
        self.name = name
        self.email = email
    }
}

extension PersonLookup: KindFields {
    enum CodingKeys: String, CodingKey, CaseIterable {
        case name, email
    }

    package var objection: String? {
        EmailAddress.objection(to: email, of: "email") ?? DisplayName.objection(to: name, of: "name")
    }

    /// The row of ``Kind/personLookup``.
    package static let row = KindRow(
        Self.self, CodingKeys.self, in: [.common], ids: .natural, bytesMax: Kind.commonBytesMax)
}
