/// A connection or a statement that failed, in PostgreSQL's own terms.
package struct PostgresError: Error, Equatable, CustomStringConvertible {
    /// The five-character SQLSTATE, or `nil` when the server did not answer.
    /// Source: PostgreSQL manual, Appendix A.
    package let sqlState: String?

    /// The server's primary message, or libpq's when there is none from the server.
    package let message: String

    /// The server's DETAIL, for example the key that was there already.
    package var detail: String?

    /// The statement that failed, cut to 200 characters. Parameters are never part of it.
    package var statement: String?

    package init(sqlState: String?, message: String, detail: String? = nil, statement: String? = nil) {
        self.sqlState = sqlState
        self.message = message.last == "\n" ? String(message.dropLast()) : message
        self.detail = detail
        self.statement = statement.map { String($0.prefix(200)) }
    }

    /// The connection is gone. Whether a transaction that was being committed did commit is unknown.
    package var isConnectionLost: Bool {
        guard let sqlState else { return true }
        return sqlState.hasPrefix("08") || ["57P01", "57P02", "57P03", "57P05", "25P03"].contains(sqlState)
    }

    /// The database is not the one that was worked with, or lacks what was written last: whatever is remembered of it
    /// must be forgotten, and nothing is done until a person has acted.
    package var isOfOtherHistory: Bool { sqlState == Self.otherHistory }

    /// Raised by the check that a session begins with (`Connection.init`); no state of PostgreSQL's own.
    package static let otherHistory = "FP001"

    /// The same work may succeed when it is done again: infrastructure and conflicts, never data.
    ///
    /// Classes 08 (connection), 40 (serialization, deadlock), 53 (resources), 57 (operator), 58 (system), and
    /// 55P03 (`lock_timeout`), 25P03 (`idle_in_transaction_session_timeout`), 25006 (a standby answered).
    package var isRetriable: Bool {
        guard let sqlState else { return true }
        if isLocked || ["25P03", "25006"].contains(sqlState) { return true }
        return ["08", "40", "53", "57", "58"].contains(String(sqlState.prefix(2)))
    }

    /// Somebody held a lock for longer than `lock_timeout` (55P03). Nothing was done.
    package var isLocked: Bool { sqlState == "55P03" }

    /// It took longer than `statement_timeout`, or somebody ended it (57014). Nothing was done.
    package var isOutOfTime: Bool { sqlState == "57014" }

    /// A table is not there: a later schema file makes it.
    package var isOfMissingTable: Bool { sqlState == "42P01" }

    /// A value was refused (class 22, 23 or 54): one of the rows is bad, the others are not.
    package var isDataError: Bool {
        guard let sqlState else { return false }
        return ["22", "23", "54"].contains(String(sqlState.prefix(2)))
    }

    package var description: String {
        var text = sqlState.map { "PostgreSQL \($0): \(message)" } ?? "PostgreSQL: \(message)"
        if let detail { text += " (\(detail))" }
        if let statement { text += " in: \(statement)" }
        return text
    }
}
