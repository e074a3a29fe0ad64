import Environments
import FoundationEssentials
import Model

/// Who asks: a person of an environment, or a program that integrates a back end with it.
struct Caller: Sendable, Hashable {
    enum Identity: Sendable, Hashable {
        /// - Parameters:
        ///   - email: The address at the first login, which names the own realm.
        ///   - object: The id of the `Person` object.
        case person(email: String, realm: RealmPath, object: UUID)
        case integration(name: String)
    }

    let environment: EnvironmentID
    /// Their number among clients: a person's in `access.person`; an integration's in `access.integration`, negated.
    let id: Int32
    let identity: Identity

    init(environment: EnvironmentID, id: Int32, identity: Identity) {
        self.environment = environment
        self.id = id
        self.identity = identity
    }

    init(_ integration: IntegrationStore.Integration) {
        self.init(
            environment: integration.environment, id: -integration.id, identity: .integration(name: integration.name))
    }

    /// A person's own realm.
    var own: RealmPath? {
        switch identity {
        case .person(_, let realm, _): realm
        case .integration: nil
        }
    }

    /// The id of a person's `Person` object.
    var object: UUID? {
        switch identity {
        case .person(_, _, let object): object
        case .integration: nil
        }
    }

    /// For the audit log.
    var name: String {
        switch identity {
        case .person(let email, _, _): email
        case .integration(let name): "integration:\(name)"
        }
    }

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
