import AdminQueries
import Essentials
import Glibc
import Postgres

extension RetryOutcome {
    /// So many keys are waited for; of more it is not told one by one.
    static let keyCountMax = 20
    private static let pause = Duration.milliseconds(100)

    /// Waits until each is decided about, or the time is over.
    ///
    /// - Returns: In the order of the rows.
    static func wait(
        for rows: [ParkedStore.Row], within: Duration, on connection: inout Connection
    ) throws -> [RetryOutcome] {
        let deadline = ContinuousClock.now + within
        while true {
            let found = try rows.map { try find($0.name, subject: $0.subject, on: &connection) }
            if ContinuousClock.now >= deadline || !found.contains(where: { $0.state == .onItsWay }) { return found }
            poll(nil, 0, Int32(pause.milliseconds))
        }
    }

    /// One line for people.
    func text(of key: String) -> String {
        switch state {
        case .handled: "\(key) is handled: \(detail)"
        case .parkedAgain: "\(key) is parked again: \(detail)"
        case .onItsWay: "\(key) is on its way still: fieldpost parked show '\(key)'"
        }
    }
}
