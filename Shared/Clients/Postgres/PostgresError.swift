/// The failure of a connection or a statement, in PostgreSQL's terms.
package struct PostgresError: Error, Equatable, CustomStringConvertible {
    /// The five-character SQLSTATE; `nil` if the server did not respond. Source: PostgreSQL manual, Appendix A.
    package let sqlState: String?

    /// The server's primary message, or libpq's if there is none.
    package let message: String

    /// The server's DETAIL, such as the duplicate key.
    package var detail: String?

    /// The failed statement, truncated to 200 characters, without parameters.
    package var statement: String?

    package init(sqlState: String?, message: String, detail: String? = nil, statement: String? = nil) {
        self.sqlState = sqlState
        self.message = message.last == "\n" ? String(message.dropLast()) : message
        self.detail = detail
        self.statement = statement.map { String($0.prefix(200)) }
    }

    /// Whether the connection was lost. It is then unknown whether a transaction in COMMIT was committed.
    package var isConnectionLost: Bool {
        guard let sqlState else { return true }
        return sqlState.hasPrefix("08") || ["57P01", "57P02", "57P03", "57P05", "25P03"].contains(sqlState)
    }

    /// Whether the database has a different timeline or lacks the latest commits: state derived from it must be
    /// discarded, and processing stops until manual action.
    package var isTimelineChange: Bool { sqlState == Self.timelineChange }

    /// Raised by the check of a new session (`Connection.init`); not one of PostgreSQL's own states.
    package static let timelineChange = "FP001"

    /// Whether a retry may succeed: infrastructure failures and conflicts, never data errors.
    ///
    /// Classes 08 (connection), 40 (serialization, deadlock), 53 (resources), 57 (operator), 58 (system), and
    /// 55P03 (`lock_timeout`), 25P03 (`idle_in_transaction_session_timeout`), 25006 (connected to a standby).
    package var isRetriable: Bool {
        guard let sqlState else { return true }
        if isLocked || ["25P03", "25006"].contains(sqlState) { return true }
        return ["08", "40", "53", "57", "58"].contains(String(sqlState.prefix(2)))
    }

    /// Whether `lock_timeout` expired while another transaction held a lock (55P03). The statement had no effect.
    package var isLocked: Bool { sqlState == "55P03" }

    /// Whether `statement_timeout` expired or the statement was cancelled (57014). It had no effect.
    package var isStatementTimeout: Bool { sqlState == "57014" }

    /// Whether a table does not exist, because a later schema file creates it.
    package var isMissingTable: Bool { sqlState == "42P01" }

    /// Whether a column does not exist, because a later schema file adds it.
    package var isMissingColumn: Bool { sqlState == "42703" }

    /// Whether a value was rejected (class 22, 23 or 54): one row of the batch is invalid.
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
