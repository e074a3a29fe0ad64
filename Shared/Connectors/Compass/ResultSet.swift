package import BackendProtocol

/// A query that was run. Its rows are read page by page; the server keeps it for as long as it likes.
package struct ResultSet: Sendable, Equatable {
    package let id: String
    /// The `dbId` of the query.
    package let query: String
    /// The names of the columns that are shown, in their order.
    package let columns: [String]
    /// Rows of a page that were asked for.
    package let pageRowsMax: Int
}

/// Some rows of a result set.
package struct ResultPage: Sendable, Equatable {
    package let rows: [ResultRow]
    /// Whether none follows.
    package let isLast: Bool
    /// Rows that are on it as well: a value in one is no text, or there is not one for each column.
    package var unreadable: [UnreadableRecord] = []
}

/// A row, whose values are asked for by the names of their columns.
package struct ResultRow: Sendable, Equatable {
    private let columns: [String]
    private let values: [String]

    init(columns: [String], values: [String]) {
        self.columns = columns
        self.values = values
    }

    /// The value of a column, empty where the record has none; `nil` when the query has no such column.
    package subscript(_ column: String) -> String? {
        columns.firstIndex(of: column).map { values[$0] }
    }
}
