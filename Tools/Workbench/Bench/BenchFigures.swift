import FoundationEssentials

/// What was measured in turn, and how it is told.
struct BenchFigures {
    private var values: [(name: String, unit: String, values: [Double])] = []

    mutating func add(_ name: String, _ unit: String, _ value: Double) {
        if let index = values.firstIndex(where: { $0.name == name }) {
            values[index].values.append(value)
        } else {
            values.append((name, unit, [value]))
        }
    }

    /// The newest value of each figure, on one line.
    var latest: String {
        values.map { "\($0.name) \(Self.text($0.values.last ?? .nan))" }.joined(separator: "; ")
    }

    func median(_ name: String) -> Double {
        guard let sorted = values.first(where: { $0.name == name })?.values.sorted(), !sorted.isEmpty else {
            return .nan
        }
        let middle = sorted.count / 2
        return sorted.count % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
    }

    func largest(_ name: String) -> Double {
        values.first { $0.name == name }?.values.max() ?? .nan
    }

    /// The table of medians with their ranges.
    func table(title: String) -> String {
        var lines = [title]
        let width = values.map(\.name.count).max() ?? 0
        for (name, unit, values) in values {
            let padded = name + String(repeating: " ", count: width - name.count)
            let range = "[\(Self.text(values.min() ?? 0)) … \(Self.text(values.max() ?? 0))]"
            lines.append("  \(padded)  \(Self.text(median(name))) \(unit)  \(range)")
        }
        return lines.joined(separator: "\n")
    }

    static func ratio(_ name: String, _ value: Double, aim: Double, isAtMost: Bool = false) -> String {
        let isMet = isAtMost ? value <= aim : value >= aim
        let aimText = "\(isAtMost ? "at most" : "at least") \(text(aim))"
        return "  \(name): \(text(value)) (aim \(aimText))\(isMet ? "" : "  NOT MET")"
    }

    static func text(_ value: Double) -> String {
        if value >= 1_000 { return String(Int(value.rounded())) }
        let hundredths = Int((value * 100).rounded())
        return "\(hundredths / 100)." + (hundredths % 100 < 10 ? "0" : "") + "\(hundredths % 100)"
    }
}
