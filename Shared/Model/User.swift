import Essentials
public import FoundationEssentials

/// Fields of a `User` object: the owner of a personal realm. One per personal realm.
public struct User: Codable, Equatable, Sendable {
    /// The person's e-mail address in lower case.
    public var email: String
    /// The person's display name.
    public var name: String
    /// The catalogue whose realm (``RealmPath/catalogue(_:)``) contains the trees that this person can report on.
    public var catalogue: UUID?
    /// The ids of the templates that the person can use, in display order; none if absent.
    public var reportingTemplates: [UUID]

    /// Creates the fields of a user.
    public init(email: String, name: String, catalogue: UUID? = nil, reportingTemplates: [UUID] = []) {
        self.email = email
        self.name = name
        self.catalogue = catalogue
        self.reportingTemplates = reportingTemplates
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
