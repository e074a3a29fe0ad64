import Essentials
public import FoundationEssentials

/// Fields of a `User` object: the person a personal realm belongs to. One per personal realm.
public struct User: Codable, Equatable, Sendable {
    /// The person's e-mail address, lower case.
    public var email: String
    /// The person's name as people write it.
    public var name: String
    /// The catalogue whose realm (``RealmPath/catalogue(_:)``) holds the trees this person may report on.
    public var catalogue: UUID?
    /// The ids of the templates the person may use, in the order to show them.
    public var reportingTemplates: [UUID]

    /// A person.
    public init(email: String, name: String, catalogue: UUID? = nil, reportingTemplates: [UUID] = []) {
        self.email = email
        self.name = name
        self.catalogue = catalogue
        self.reportingTemplates = reportingTemplates
    }

    /// Reads the fields; without templates there are none.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        email = try container.decode(String.self, forKey: .email)
        name = try container.decode(String.self, forKey: .name)
        catalogue = try container.decodeIfPresent(UUID.self, forKey: .catalogue)
        reportingTemplates = try container.decodeIfPresent([UUID].self, forKey: .reportingTemplates) ?? []
    }
}

extension User: KindFields {
    enum CodingKeys: String, CodingKey, CaseIterable {
        case email, name, catalogue, reportingTemplates
    }

    package var objection: String? {
        EmailAddress.objection(to: email, of: "email")
            ?? (name.isEmpty ? nil : DisplayName.objection(to: name, of: "name"))
    }

    /// The row of ``Kind/user``.
    package static let row = KindRow(Self.self, CodingKeys.self, in: [.user], permissions: .user)
}
