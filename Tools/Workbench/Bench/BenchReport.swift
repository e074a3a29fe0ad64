import CommandLineSupport
import Foundation

/// A limit for a figure, or for the ratio of two figures.
struct BenchTarget: Sendable {
    enum Limit: Sendable {
        case atLeast(Double)
        case atMost(Double)
    }

    /// The value of a figure that counts.
    enum Statistic: Sendable { case median, maximum }

    let name: String
    let figure: String
    var reference: String?
    var statistic = Statistic.median
    /// `nil`: the ratio is reported without a target.
    var limit: Limit?
}

/// The figures of a benchmark's runs.
struct BenchReport {
    struct Figure: Encodable {
        let name: String
        let unit: String
        var values: [Double]
    }

    let name: String
    let targets: [BenchTarget]
    private(set) var figures: [Figure] = []

    init(_ name: String, targets: [BenchTarget]) {
        self.name = name
        self.targets = targets
    }

    /// Adds a run's value.
    mutating func add(_ name: String, _ unit: String, _ value: Double) {
        if let index = figures.firstIndex(where: { $0.name == name }) {
            figures[index].values.append(value)
        } else {
            figures.append(Figure(name: name, unit: unit, values: [value]))
        }
    }

    /// The figures of the latest run, on one line.
    var latestValues: String {
        figures.map { "\($0.name) \(Self.text($0.values.last ?? .nan))" }.joined(separator: "; ")
    }

    /// The table of medians with their ranges, and the targets.
    var text: String {
        let rounds = figures.first?.values.count ?? 0
        var table = Table(
            [(name, .left), ("median", .right), ("min", .right), ("max", .right), ("unit", .left)],
            empty: "\(name): nothing was measured")
        for figure in figures {
            let (low, high) = (figure.values.min() ?? .nan, figure.values.max() ?? .nan)
            let cells = [figure.median, low, high].map(Self.text)
            table.add([figure.name] + cells + [figure.unit])
        }
        var results = Table(
            [("ratio or figure", .left), ("value", .right), ("target", .left), ("result", .left)], empty: "no targets")
        for result in self.results {
            results.add([
                result.name, Self.text(result.value), result.target ?? "",
                result.isMet.map { $0 ? "met" : "MISSED" } ?? "",
            ])
        }
        return "\(rounds) runs on \(BenchInstallation.description)\n\n\(table.text)\n\(results.text)"
    }

    /// The values of all runs, the medians and the targets as JSON.
    var json: Data {
        get throws {
            struct Row: Encodable {
                let name, unit: String
                let median: Double
                let values: [Double]
            }
            struct Document: Encodable {
                let name, installation: String
                let figures: [Row]
                let results: [Result]
            }
            let rows = figures.map { Row(name: $0.name, unit: $0.unit, median: $0.median, values: $0.values) }
            return try JSONEncoder.report.encode(
                Document(name: name, installation: BenchInstallation.description, figures: rows, results: results))
        }
    }

    /// A target with its value.
    private struct Result: Encodable {
        let name: String
        let value: Double
        let target: String?
        let isMet: Bool?
    }

    private var results: [Result] {
        targets.map { target in
            let value = value(of: target)
            return switch target.limit {
            case .atLeast(let limit):
                Result(
                    name: target.name, value: value, target: "at least \(Self.text(limit))", isMet: value >= limit)
            case .atMost(let limit):
                Result(name: target.name, value: value, target: "at most \(Self.text(limit))", isMet: value <= limit)
            case nil: Result(name: target.name, value: value, target: nil, isMet: nil)
            }
        }
    }

    private func value(of target: BenchTarget) -> Double {
        func figure(_ name: String) -> Figure? { figures.first { $0.name == name } }
        guard let measured = figure(target.figure) else { return .nan }
        let value = target.statistic == .median ? measured.median : measured.values.max() ?? .nan
        guard let reference = target.reference else { return value }
        return value / (figure(reference)?.median ?? .nan)
    }

    static func text(_ value: Double) -> String {
        guard value.isFinite else { return "-" }
        return String(format: value >= 1_000 ? "%.0f" : "%.2f", value)
    }
}

extension BenchReport.Figure {
    var median: Double {
        let sorted = values.sorted()
        guard !sorted.isEmpty else { return .nan }
        let middle = sorted.count / 2
        return sorted.count % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
    }
}

extension JSONEncoder {
    /// The format of all reports that are written to files.
    static var report: JSONEncoder {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        encoder.nonConformingFloatEncodingStrategy = .convertToString(
            positiveInfinity: "inf", negativeInfinity: "-inf", nan: "nan")
        return encoder
    }
}
