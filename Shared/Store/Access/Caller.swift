package import FoundationEssentials
package import Model

/// An authenticated caller: a person of an environment, or an integration.
package enum Caller: Sendable, Hashable {
    case person(BoundPerson)
    case integration(IntegrationStore.Integration)

    package var environment: EnvironmentID {
        switch self {
        case .person(let person): person.environment
        case .integration(let integration): integration.environment
        }
    }

    /// The id in audit and rate limits: a person's in `access.person`; an integration's in `access.integration`,
    /// negated.
    package var id: Int32 {
        switch self {
        case .person(let person): person.id
        case .integration(let integration): -integration.id
        }
    }

    private var boundPerson: BoundPerson? { if case .person(let person) = self { person } else { nil } }

    /// A person's own realm; `nil` for an integration.
    package var own: RealmPath? { boundPerson?.realm }

    /// The id of a person's `Person` object; `nil` for an integration.
    package var object: UUID? { boundPerson?.object }

    /// The name in the audit log.
    package var name: String {
        switch self {
        case .person(let person): person.email
        case .integration(let integration): "integration:\(integration.name)"
        }
    }
}

/// A person of an environment whose e-mail address is bound to an account of the identity provider.
package struct BoundPerson: Sendable, Hashable {
    package let environment: EnvironmentID
    /// Their number in `access.person`.
    package let id: Int32
    /// The address at the first login, which names the own realm.
    package let email: String
    /// Their own realm, `/users/{e-mail}`.
    package let realm: RealmPath
    /// The id of their `Person` object.
    package let object: UUID

    package init(environment: EnvironmentID, id: Int32, email: String, realm: RealmPath, object: UUID) {
        self.environment = environment
        self.id = id
        self.email = email
        self.realm = realm
        self.object = object
    }
}
