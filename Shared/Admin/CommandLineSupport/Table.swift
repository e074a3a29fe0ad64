/// A text table with a header, with columns as wide as their content.
package struct Table {
    /// A column. A text literal is the title of a left-aligned one.
    package struct Column: ExpressibleByStringLiteral {
        fileprivate let title: String
        fileprivate var isRight = false

        package init(stringLiteral title: String) { self.title = title }

        /// A right-aligned column.
        package static func right(_ title: String) -> Column {
            var column = Column(stringLiteral: title)
            column.isRight = true
            return column
        }
    }

    private let columns: [Column]
    private let rows: [[String]]
    private let empty: String

    /// - Parameters:
    ///   - empty: The text that is printed if there are no rows.
    ///   - cells: Returns the cells of a row, one per column.
    package init<Row>(_ columns: [Column], _ rows: [Row], empty: String = "", cells: (Row) -> [String]) {
        self.columns = columns
        self.empty = empty
        self.rows = rows.map { cells($0).map(Self.oneLine) }
        precondition(self.rows.allSatisfy { $0.count == columns.count })
    }

    /// The lines of the table, each with a line feed.
    package var text: String {
        if rows.isEmpty { return empty + "\n" }
        let lines = [columns.map(\.title)] + rows
        let widths = columns.indices.map { column in lines.map { $0[column].count }.max() ?? 0 }
        return lines.map { line in
            var text = ""
            for (column, cell) in line.enumerated() {
                let padding = String(repeating: " ", count: widths[column] - cell.count)
                text += (column == 0 ? "" : "  ") + (columns[column].isRight ? padding + cell : cell + padding)
            }
            while text.last == " " { text.removeLast() }
            return text + "\n"
        }
        .joined()
    }

    /// Replaces control characters: texts from other systems must not control the terminal.
    package static func oneLine(_ cell: String) -> String {
        String(String.UnicodeScalarView(cell.unicodeScalars.map { $0.value < 0x20 || $0.value == 0x7F ? " " : $0 }))
    }
}
