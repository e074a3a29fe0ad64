import AdminQueries
import Essentials
import Glibc
import Postgres

extension RetryOutcome {
    /// Maximum number of keys whose outcomes are waited for and reported.
    static let keyCountMax = 20
    private static let pause = Duration.milliseconds(100)

    /// Waits until each key is processed, or the time is over.
    ///
    /// - Returns: In the order of the rows.
    static func wait(
        for rows: [DeferredKeyStore.Row], within: Duration, on connection: inout Connection
    ) throws -> [RetryOutcome] {
        let deadline = ContinuousClock.now + within
        while true {
            let outcomes = try rows.map { try find($0.name, subject: $0.subject, on: &connection) }
            if ContinuousClock.now >= deadline || !outcomes.contains(where: { $0.state == .pending }) {
                return outcomes
            }
            poll(nil, 0, Int32(pause.milliseconds))
        }
    }

    /// One line of output.
    func text(of key: String) -> String {
        switch state {
        case .handled: "\(key) is handled: \(detail)"
        case .deferredAgain: "\(key) is deferred again: \(detail)"
        case .pending: "\(key) is still in flight: fieldpost deferred show '\(key)'"
        }
    }
}
