import Model

/// A person of an environment, known by an identity that was bound to the e-mail address.
struct Person: Sendable, Hashable {
    let environment: EnvironmentID
    /// Their number in `access.person`.
    let id: Int32
    /// Their own realm, `/users/{e-mail}`.
    let realm: RealmPath
}
