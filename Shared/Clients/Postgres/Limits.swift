/// How long each kind of waiting for PostgreSQL may take. All are always set.
package struct Limits: Sendable {
    /// To open a connection; whole seconds, at least 2 (libpq's own lower bound). 5 s by default.
    package var connectMax = Duration.seconds(5)
    /// One statement (`statement_timeout`). 30 s by default.
    package var statementMax = Duration.seconds(30)
    /// Waiting for a lock (`lock_timeout`). 10 s by default.
    package var lockMax: Duration
    /// A transaction in which nothing happens (`idle_in_transaction_session_timeout`). 10 s by default.
    package var idleInTransactionMax = Duration.seconds(10)
    /// Sent data that nobody confirms (`tcp_user_timeout`, on both sides). 10 s by default.
    package var tcpUserMax = Duration.seconds(10)
    /// Nothing said outside a transaction (`idle_session_timeout`); `nil`, the default, for as long as one likes.
    package var idleMax: Duration?

    /// - Parameter lockMax: Short where other work is waiting that needs other locks.
    package init(lockMax: Duration = .seconds(10)) { self.lockMax = lockMax }

    /// For a session that holds a lock others wait for: when its process is frozen, or its host is gone, PostgreSQL
    /// ends it within 11 s, and the lock goes to another. Who has such a session says something every few seconds.
    package static var ofLockHolder: Limits {
        var limits = Limits()
        limits.idleMax = .seconds(10)
        return limits
    }

    /// After this long without an answer the connection is given up: the server's own limits have passed.
    var answerMax: Duration { statementMax + lockMax }
}
