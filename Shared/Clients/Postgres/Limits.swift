/// The timeouts of a PostgreSQL session. All of them are always set.
package struct Limits: Sendable {
    /// Opening a connection; whole seconds, at least 2 (libpq's minimum). Defaults to 5 s.
    package var connectMax = Duration.seconds(5)
    /// One statement (`statement_timeout`). Defaults to 30 s.
    package var statementMax = Duration.seconds(30)
    /// Waiting for a lock (`lock_timeout`). Defaults to 10 s.
    package var lockMax: Duration
    /// An idle transaction (`idle_in_transaction_session_timeout`). Defaults to 10 s.
    package var idleInTransactionMax = Duration.seconds(10)
    /// Sent data without acknowledgement (`tcp_user_timeout`, on both sides). Defaults to 10 s.
    package var tcpUserMax = Duration.seconds(10)
    /// An idle session outside a transaction (`idle_session_timeout`). Defaults to `nil`, no limit.
    package var idleMax: Duration?

    /// - Parameter lockMax: Choose a short timeout if waiting for a lock delays work that needs other locks.
    package init(lockMax: Duration = .seconds(10)) { self.lockMax = lockMax }

    /// Timeouts for a session that holds a lock others wait for: if its process is frozen or its host unreachable,
    /// PostgreSQL ends it within 11 s and releases the lock. The session must send a statement every few seconds.
    package static var lockHolder: Limits {
        var limits = Limits()
        limits.idleMax = .seconds(10)
        return limits
    }

    /// The timeout for results, after which the connection is closed: the server's own timeouts expire earlier.
    var resultMax: Duration { statementMax + lockMax }
}
