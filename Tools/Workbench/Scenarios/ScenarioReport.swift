import CommandLineSupport
import Foundation

/// The result of a scenario.
struct ScenarioReport: Encodable, Sendable {
    struct Figure: Encodable, Sendable {
        let name: String
        let value: Double
        let unit: String
    }

    /// A step of the scenario with its measured values, by the names in ``columns``.
    struct Step: Encodable, Sendable {
        let name: String
        var values: [String: Double] = [:]
    }

    /// The names of the steps' values, with their units.
    private(set) var columns = ["seconds"]
    var steps: [Step] = []
    private(set) var figures: [Figure] = []
    var differences: [String] = []

    private static let shownMax = 50

    mutating func add(_ name: String, _ value: some BinaryInteger) { add(name, Double(value), "") }

    mutating func add(_ name: String, _ value: Double, _ unit: String) {
        figures.append(Figure(name: name, value: value, unit: unit))
    }

    /// The tables of steps and figures, the first differences, and the verdict.
    var text: String {
        let table = Table(["step"] + columns.map(Table.Column.right), steps) { step in
            [step.name] + columns.map { step.values[$0].map(Self.text) ?? "-" }
        }
        let list = Table(["figure", .right("value"), "unit"], figures) { figure in
            let isCount = figure.unit.isEmpty && figure.value.isFinite
            return [figure.name, isCount ? "\(Int(figure.value))" : Self.text(figure.value), figure.unit]
        }
        var lines = [table.text, list.text]
        lines += differences.prefix(Self.shownMax).map { "  \($0)" }
        let hidden = differences.count - Self.shownMax
        if hidden > 0 { lines.append("  … and \(hidden) more") }
        lines.append("verdict: " + (differences.isEmpty ? "no differences" : "\(differences.count) differences"))
        return lines.joined(separator: "\n")
    }

    static func text(_ value: Double) -> String { String(format: abs(value) >= 1_000 ? "%.0f" : "%.1f", value) }
}
