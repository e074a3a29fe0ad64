package import FoundationEssentials
package import Model

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
