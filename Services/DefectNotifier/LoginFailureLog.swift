import Model

/// Logins whose failure was logged, so that each failure is logged once until the login works again.
struct LoginFailureLog {
    private struct Login: Hashable {
        let environment: EnvironmentID
        /// `nil`: the environment's account.
        let realm: Int32?
    }

    /// Limit on stored logins. When it is reached, all are removed, and failures are logged again.
    private static let countMax = 10_000

    private var failing: Set<Login> = []

    mutating func shouldReport(_ environment: EnvironmentID, _ realm: Int32?) -> Bool {
        if failing.count >= Self.countMax { failing.removeAll() }
        return failing.insert(Login(environment: environment, realm: realm)).inserted
    }

    mutating func clear(_ environment: EnvironmentID, _ realm: Int32?) {
        if !failing.isEmpty { failing.remove(Login(environment: environment, realm: realm)) }
    }
}
