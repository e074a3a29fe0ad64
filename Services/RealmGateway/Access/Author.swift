import FoundationEssentials
import Model

/// Who makes a mutation.
struct Author: Equatable, Sendable {
    /// What they may do in the mutation's realm.
    var access: Access
    /// The id of their `Person` object; an integration has none.
    var person: UUID?
    /// Their e-mail address; an integration has none.
    var email: String?

    /// An author.
    init(_ access: Access, person: UUID? = nil, email: String? = nil) {
        self.access = access
        self.person = person
        self.email = email
    }

    /// A worker in their own realm.
    static let owner = Author(Access(.person(.worker), .owner))
}

/// Whose mutation it is, once it is permitted.
enum Writer: Equatable {
    /// A person with this e-mail address, who may write these fields.
    case person(email: String?, fields: [String])
    /// A back-end integration, which writes what belongs to the server.
    case integration
}
