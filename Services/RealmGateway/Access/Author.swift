import Access
import FoundationEssentials
import Model

/// The principal that makes a mutation.
struct Author: Equatable, Sendable {
    /// Their permissions in the mutation's realm.
    var access: Access
    /// The id of their `Person` object; an integration has none.
    var person: UUID?
    /// Their e-mail addresses, at the first login and now. An integration has none.
    var emails: [String]

    init(_ access: Access, person: UUID? = nil, emails: [String] = []) {
        self.access = access
        self.person = person
        self.emails = emails
    }

    /// A worker in their own realm.
    static let owner = Author(Access(.person(.worker), .owner))
}

/// The author of a permitted mutation.
enum Writer: Equatable {
    /// A person with this `Person` object and these e-mail addresses, and the fields that they may write.
    case person(UUID?, emails: [String], fields: [String])
    /// A back-end integration, which writes the server's fields.
    case integration
}

extension Caller {
    /// Returns the caller as the author of a mutation, with their permissions in its realm.
    ///
    /// - Parameter laterEmail: A person's current address, if it has changed.
    func author(_ access: Access, laterEmail: String? = nil) -> Author {
        switch self {
        case .person(let person):
            Author(access, person: person.object, emails: [person.email, laterEmail].compactMap(\.self))
        case .integration: Author(access)
        }
    }
}
