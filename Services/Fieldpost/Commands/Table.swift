import Essentials
import Runtime

/// Rows with a heading, in columns as wide as what they hold.
struct Table {
    enum Alignment { case left, right }

    private let columns: [(title: String, alignment: Alignment)]
    private var rows: [[String]] = []
    /// What is printed instead when there is no row.
    private let empty: String

    init(_ columns: [(String, Alignment)], empty: String) {
        self.columns = columns
        self.empty = empty
    }

    /// - Precondition: One cell per column.
    mutating func add(_ cells: [String]) {
        precondition(cells.count == columns.count)
        rows.append(cells.map(Self.oneLine))
    }

    /// Every line ended by a line feed.
    var text: String {
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
    static func oneLine(_ cell: String) -> String {
        String(String.UnicodeScalarView(cell.unicodeScalars.map { $0.value < 0x20 || $0.value == 0x7F ? " " : $0 }))
    }
}

extension Duration {
    /// For people: the two largest units, such as `2h 05m`.
    var shortText: String {
        let milliseconds = self.milliseconds
        let seconds = milliseconds / 1_000
        func twoDigits(_ value: Int64) -> String { value < 10 ? "0\(value)" : "\(value)" }
        return switch seconds {
        case ..<1: "\(max(0, milliseconds))ms"
        case ..<60: "\(seconds)s"
        case ..<3_600: "\(seconds / 60)m \(twoDigits(seconds % 60))s"
        case ..<86_400: "\(seconds / 3_600)h \(twoDigits(seconds / 60 % 60))m"
        default: "\(seconds / 86_400)d \(twoDigits(seconds / 3_600 % 24))h"
        }
    }
}
