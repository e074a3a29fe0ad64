package import BackendProtocol

/// The result of a query, read page by page. The server decides when it discards it.
package struct ResultSet: Sendable, Equatable {
    package let id: String
    /// The `dbId` of the query.
    package let query: String
    /// The names of the displayed columns, in their order.
    package let columns: [String]
    /// Requested rows per page.
    package let pageRowsMax: Int
}

/// A page of a result set.
package struct ResultPage: Sendable, Equatable {
    package let rows: [ResultRow]
    /// Whether this is the last page.
    package let isLast: Bool
    /// Rows that could not be decoded: a value is not a text, or the number of values differs from that of the columns.
    package var unreadable: [UnreadableRecord] = []
}

/// A row with access to its values by column name.
package struct ResultRow: Sendable, Equatable {
    private let columns: [String]
    private let values: [String]

    init(columns: [String], values: [String]) {
        self.columns = columns
        self.values = values
    }

    /// The value of a column, empty if the record has none; `nil` if the query has no such column.
    package subscript(_ column: String) -> String? {
        columns.firstIndex(of: column).map { values[$0] }
    }
}
