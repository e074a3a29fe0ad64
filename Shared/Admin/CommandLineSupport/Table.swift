/// Rows with a heading, in columns as wide as what they hold.
package struct Table {
    /// On which side a column's cells begin.
    package enum Alignment: Sendable { case left, right }

    private let columns: [(title: String, alignment: Alignment)]
    private var rows: [[String]] = []
    /// What is printed instead when there is no row.
    private let empty: String

    /// - Parameters:
    ///   - columns: The heading of each, and its side.
    ///   - empty: What is printed when there is no row.
    package init(_ columns: [(String, Alignment)], empty: String) {
        self.columns = columns
        self.empty = empty
    }

    /// Adds a row.
    ///
    /// - Precondition: One cell per column.
    package mutating func add(_ cells: [String]) {
        precondition(cells.count == columns.count)
        rows.append(cells.map(Self.oneLine))
    }

    /// Every line ended by a line feed.
    package var text: String {
        if rows.isEmpty { return empty + "\n" }
        let lines = [columns.map(\.title)] + rows
        let widths = columns.indices.map { column in lines.map { $0[column].count }.max() ?? 0 }
        return lines.map { line in
            var text = ""
            for (column, cell) in line.enumerated() {
                let padding = String(repeating: " ", count: widths[column] - cell.count)
                text +=
                    (column == 0 ? "" : "  ") + (columns[column].alignment == .left ? cell + padding : padding + cell)
            }
            while text.last == " " { text.removeLast() }
            return text + "\n"
        }
        .joined()
    }

    /// A control character must not reach the terminal: reasons and subjects come from other systems.
    package static func oneLine(_ cell: String) -> String {
        String(String.UnicodeScalarView(cell.unicodeScalars.map { $0.value < 0x20 || $0.value == 0x7F ? " " : $0 }))
    }
}
