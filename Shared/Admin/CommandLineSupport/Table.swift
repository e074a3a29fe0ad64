/// A text table with a header, with columns as wide as their content.
package struct Table {
    /// The alignment of a column.
    package enum Alignment: Sendable { case left, right }

    private let columns: [(title: String, alignment: Alignment)]
    private var rows: [[String]] = []
    /// The text that is printed if there are no rows.
    private let empty: String

    /// - Parameters:
    ///   - columns: The title and alignment of each column.
    ///   - empty: The text that is printed if there are no rows.
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

    /// The lines of the table, each with a line feed.
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

    /// Replaces control characters: texts from other systems must not control the terminal.
    package static func oneLine(_ cell: String) -> String {
        String(String.UnicodeScalarView(cell.unicodeScalars.map { $0.value < 0x20 || $0.value == 0x7F ? " " : $0 }))
    }
}
