import Model

/// What was said of logins that cannot read, so that it is said once, and again when they could meanwhile.
struct Complaints {
    private struct Login: Hashable {
        let environment: EnvironmentID
        /// `nil`: the environment's account.
        let realm: Int32?
    }

    /// Logins remembered; then they are forgotten, and it is said again.
    private static let countMax = 10_000

    private var known: Set<Login> = []

    mutating func isNew(_ environment: EnvironmentID, _ realm: Int32?) -> Bool {
        if known.count >= Self.countMax { known.removeAll() }
        return known.insert(Login(environment: environment, realm: realm)).inserted
    }

    mutating func forget(_ environment: EnvironmentID, _ realm: Int32?) {
        if !known.isEmpty { known.remove(Login(environment: environment, realm: realm)) }
    }
}
