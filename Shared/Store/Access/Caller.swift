package import FoundationEssentials
package import Model
import Tenants

/// Who asks: a person of an environment, or a program that integrates a back end with it.
package struct Caller: Sendable, Hashable {
    package enum Identity: Sendable, Hashable {
        /// - Parameters:
        ///   - email: The address at the first login, which names the own realm.
        ///   - object: The id of the `Person` object.
        case person(email: String, realm: RealmPath, object: UUID)
        case integration(name: String)
    }

    package let environment: EnvironmentID
    /// Their number among clients: a person's in `access.person`; an integration's in `access.integration`, negated.
    package let id: Int32
    package let identity: Identity

    package init(environment: EnvironmentID, id: Int32, identity: Identity) {
        self.environment = environment
        self.id = id
        self.identity = identity
    }

    /// An integration.
    package init(_ integration: IntegrationStore.Integration) {
        self.init(
            environment: integration.environment, id: -integration.id, identity: .integration(name: integration.name))
    }

    /// A person's own realm.
    package var own: RealmPath? {
        switch identity {
        case .person(_, let realm, _): realm
        case .integration: nil
        }
    }

    /// The id of a person's `Person` object.
    package var object: UUID? {
        switch identity {
        case .person(_, _, let object): object
        case .integration: nil
        }
    }

    /// For the audit log.
    package var name: String {
        switch identity {
        case .person(let email, _, _): email
        case .integration(let name): "integration:\(name)"
        }
    }

    /// A person who has come in.
    package init(_ person: BoundPerson) {
        self.init(
            environment: person.environment, id: person.id,
            identity: .person(email: person.email, realm: person.realm, object: person.object))
    }
}
