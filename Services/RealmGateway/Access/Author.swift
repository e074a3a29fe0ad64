import Access
import FoundationEssentials
import Model

/// Who makes a mutation.
struct Author: Equatable, Sendable {
    /// What they may do in the mutation's realm.
    var access: Access
    /// The id of their `Person` object; an integration has none.
    var person: UUID?
    /// Their e-mail addresses: that of the first login, and the one they have by now. An integration has none.
    var emails: [String]

    /// An author.
    init(_ access: Access, person: UUID? = nil, emails: [String] = []) {
        self.access = access
        self.person = person
        self.emails = emails
    }

    /// A worker in their own realm.
    static let owner = Author(Access(.person(.worker), .owner))
}

/// Whose mutation it is, once it is permitted.
enum Writer: Equatable {
    /// A person with this `Person` object and these e-mail addresses, who may write these fields.
    case person(UUID?, emails: [String], fields: [String])
    /// A back-end integration, which writes what belongs to the server.
    case integration
}

extension Caller {
    /// The caller as the author of a mutation of a realm, with what they may do there.
    ///
    /// - Parameter laterEmail: A person's address by now, where that is another.
    func author(_ access: Access, laterEmail: String? = nil) -> Author {
        switch identity {
        case .person(let email, _, let object):
            Author(access, person: object, emails: [email, laterEmail].compactMap(\.self))
        case .integration: Author(access)
        }
    }
}
