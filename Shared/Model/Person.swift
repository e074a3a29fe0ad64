import Essentials
public import FoundationEssentials

/// Fields of a `Person` object: the data of a person that all people of an environment can read. One per person, in
/// `/common`.
///
/// The server creates it when the person is invited or first logs in; other objects refer to the person by its id.
public struct Person: Codable, Equatable, Sendable {
    /// The person's display name; written by the person, and corrected by managers.
    public var name: String
    /// The person's first name; written like `name`.
    public var firstName: String?
    /// The person's last name; written like `name`.
    public var lastName: String?
    /// The id of the picture's blob; written like `name`.
    public var avatar: UUID?
    /// The person's role; written by managers and admins, never by the person.
    public var role: Role

    /// Creates the fields of a person.
    public init(
        name: String = "", firstName: String? = nil, lastName: String? = nil, avatar: UUID? = nil, role: Role = .worker
    ) {
        self.name = name
        self.firstName = firstName
        self.lastName = lastName
        self.avatar = avatar
        self.role = role
    }

    /// Reads the fields; `role` defaults to worker.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        name = try container.decodeIfPresent(String.self, forKey: .name) ?? ""
        firstName = try container.decodeIfPresent(String.self, forKey: .firstName)
        lastName = try container.decodeIfPresent(String.self, forKey: .lastName)
        avatar = try container.decodeIfPresent(UUID.self, forKey: .avatar)
        role = try container.decodeIfPresent(Role.self, forKey: .role) ?? .worker
    }
}

extension Person: KindFields {
    enum CodingKeys: String, CodingKey, CaseIterable {
        case name, firstName, lastName, avatar, role
    }

    /// Names that the person writes and managers correct, and the picture.
    package static let profileNames = ["name", "firstName", "lastName", "avatar"]

    package var objection: String? {
        for (field, text) in [("name", name), ("firstName", firstName ?? ""), ("lastName", lastName ?? "")]
        where !text.isEmpty {
            if let objection = DisplayName.objection(to: text, of: field) { return objection }
        }
        return nil
    }

    /// The row of ``Kind/person``.
    package static let row = KindRow(
        Self.self, CodingKeys.self, in: [.common], ids: .natural, bytesMax: Kind.commonBytesMax, permissions: .person,
        route: Route(to: Topics.team, from: [.common]))
}

/// Fields of a `PersonLookup` object: a person's entry for searches. In `/common`, under the person's id.
public struct PersonLookup: Codable, Equatable, Sendable {
    /// The name by which other people find the person.
    public var name: String
    /// The person's own e-mail address.
    public var email: String

    /// Creates the fields of a search entry.
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
