import CommandLineSupport
import Essentials
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
        let name, unit: String
        private(set) var values: [Double] = []
        private(set) var median = Double.nan

        mutating func add(_ value: Double) {
            values.append(value)
            let (sorted, middle) = (values.sorted(), values.count / 2)
            median = sorted.count % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
        }

        func value(of statistic: BenchTarget.Statistic) -> Double {
            statistic == .median ? median : values.max() ?? .nan
        }
    }

    let name: String
    let targets: [BenchTarget]
    private(set) var figures: [Figure] = []

    /// Adds a run's value.
    mutating func add(_ name: String, _ unit: String, _ value: Double) {
        let index = figures.firstIndex { $0.name == name } ?? figures.endIndex
        if index == figures.endIndex { figures.append(Figure(name: name, unit: unit)) }
        figures[index].add(value)
    }

    /// Adds the median and the 99th percentile of a run's latencies.
    mutating func add(_ name: String, _ latencies: [Duration]) {
        for percent in [50, 99] {
            add("\(name), p\(percent)", "ms", (latencies.percentile(percent)?.inSeconds ?? .nan) * 1_000)
        }
    }

    /// The figures of the latest run, on one line.
    var latestValues: String {
        figures.map { "\($0.name) \(Self.text($0.values.last ?? .nan))" }.joined(separator: "; ")
    }

    /// The table of medians with their ranges, and the targets.
    var text: String {
        let rounds = figures.first?.values.count ?? 0
        let table = Table(
            [.init(stringLiteral: name), .right("median"), .right("min"), .right("max"), "unit"], figures,
            empty: "\(name): nothing was measured"
        ) { figure in
            let (low, high) = (figure.values.min() ?? .nan, figure.values.max() ?? .nan)
            return [figure.name] + [figure.median, low, high].map(Self.text) + [figure.unit]
        }
        let results = Table(
            ["ratio or figure", .right("value"), "target", "result"], rows, empty: "no targets"
        ) { $0 }
        return "\(rounds) runs on \(BenchInstallation.description)\n\n\(table.text)\n\(results.text)"
    }

    /// A row for each target: ratio or figure, value, target, result.
    var rows: [[String]] {
        results.map { result in
            let verdict = result.isMet.map { $0 ? "met" : "MISSED" } ?? ""
            return [result.name, Self.text(result.value), result.target ?? "", verdict]
        }
    }

    /// As ``rows``, with the figure and its reference before the value.
    var summaryRows: [[String]] {
        func text(_ name: String?, _ statistic: BenchTarget.Statistic = .median) -> String {
            guard let figure = figures.first(where: { $0.name == name }) else { return "" }
            return "\(Self.text(figure.value(of: statistic))) \(figure.unit)"
        }
        return zip(targets, rows).map { target, row in
            [row[0], text(target.figure, target.statistic), text(target.reference)] + row[1...]
        }
    }

    /// The values of all runs, the medians and the targets as JSON.
    var json: Data {
        get throws {
            struct Document: Encodable {
                let name, installation: String
                let figures: [Figure]
                let results: [Result]
            }
            return try JSONEncoder.report.encode(
                Document(name: name, installation: BenchInstallation.description, figures: figures, results: results))
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
            let (limit, isMet): (String?, Bool?) =
                switch target.limit {
                case .atLeast(let limit): ("at least \(Self.text(limit))", value >= limit)
                case .atMost(let limit): ("at most \(Self.text(limit))", value <= limit)
                case nil: (nil, nil)
                }
            return Result(name: target.name, value: value, target: limit, isMet: isMet)
        }
    }

    private func value(of target: BenchTarget) -> Double {
        func figure(_ name: String) -> Figure? { figures.first { $0.name == name } }
        guard let measured = figure(target.figure) else { return .nan }
        let value = measured.value(of: target.statistic)
        guard let reference = target.reference else { return value }
        return value / (figure(reference)?.median ?? .nan)
    }

    static func text(_ value: Double) -> String {
        guard value.isFinite else { return "-" }
        return String(format: value >= 1_000 ? "%.0f" : "%.2f", value)
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
