import Logging
import Metrics
import Model

/// Unreadable rows of trackers. Each row is logged once, and counted at each read.
struct UnreadableRowLog {
    /// Limit on stored rows of an environment. When it is reached, all are removed, and rows are logged again.
    private static let countMax = 1_000

    private var logged: [EnvironmentID: Set<UnreadableRow>] = [:]
    private var counters: [EnvironmentID: Counter] = [:]

    mutating func report(_ rows: [UnreadableRow], in environment: EnvironmentID, _ logger: Logger) {
        if rows.isEmpty { return }
        let counter =
            counters[environment]
            ?? Counter(label: "fieldpost.defects.unreadable_rows", dimensions: [("environment", "\(environment)")])
        counters[environment] = counter
        counter.increment(by: rows.count)
        if logged[environment, default: []].count > Self.countMax { logged[environment] = [] }
        for row in rows where logged[environment, default: []].insert(row).inserted {
            logger.warning(
                "skipped an unreadable row of the tracker",
                metadata: ["environment": "\(environment)", "row": "\(row)"])
        }
    }
}

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
