package import FoundationEssentials
package import Model
import Tenants

/// An authenticated caller: a person of an environment, or an integration.
package struct Caller: Sendable, Hashable {
    package enum Identity: Sendable, Hashable {
        /// - Parameters:
        ///   - email: The address at the first login, which names the own realm.
        ///   - object: The id of the `Person` object.
        case person(email: String, realm: RealmPath, object: UUID)
        case integration(name: String)
    }

    package let environment: EnvironmentID
    /// The id in audit and rate limits: a person's in `access.person`; an integration's in `access.integration`,
    /// negated.
    package let id: Int32
    package let identity: Identity

    package init(environment: EnvironmentID, id: Int32, identity: Identity) {
        self.environment = environment
        self.id = id
        self.identity = identity
    }

    /// Creates the caller of an integration.
    package init(_ integration: IntegrationStore.Integration) {
        self.init(
            environment: integration.environment, id: -integration.id, identity: .integration(name: integration.name))
    }

    /// A person's own realm; `nil` for an integration.
    package var own: RealmPath? {
        switch identity {
        case .person(_, let realm, _): realm
        case .integration: nil
        }
    }

    /// The id of a person's `Person` object; `nil` for an integration.
    package var object: UUID? {
        switch identity {
        case .person(_, _, let object): object
        case .integration: nil
        }
    }

    /// The name in the audit log.
    package var name: String {
        switch identity {
        case .person(let email, _, _): email
        case .integration(let name): "integration:\(name)"
        }
    }

    /// Creates the caller of a logged-in person.
    package init(_ person: BoundPerson) {
        self.init(
            environment: person.environment, id: person.id,
            identity: .person(email: person.email, realm: person.realm, object: person.object))
    }
}
