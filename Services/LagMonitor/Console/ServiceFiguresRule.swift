import Essentials

/// Parses a service's metrics in Prometheus' text format.
enum ServiceFiguresRule {
    /// The limit of parsed lines.
    static let lineCountMax = 20_000

    /// A value of a metric.
    struct Sample {
        let name: String
        /// The labels in braces, or nothing.
        let labels: String
        let value: Double

        /// Returns the value of a label that contains no comma; `nil` if there is none.
        func value(of label: String) -> String? {
            labels.dropFirst().dropLast().split(separator: ",").first { $0.hasPrefix(label + "=\"") }
                .map { String($0.dropFirst(label.utf8.count + 2).dropLast()) }
        }
    }

    /// Returns the values of metrics.
    static func samples(_ text: some Sequence<UInt8>, of names: Set<String>) -> [Sample] {
        var samples: [Sample] = []
        for line in Array(text).split(separator: UInt8(ascii: "\n"), maxSplits: lineCountMax) {
            guard line.first != UInt8(ascii: "#"), line.count < 4_096 else { continue }
            let beginning = line.prefix { $0 != UInt8(ascii: "{") && $0 != UInt8(ascii: " ") }
            let name = String(decoding: beginning, as: UTF8.self)
            guard names.contains(name), let space = line.lastIndex(of: UInt8(ascii: " ")),
                let value = Double(String(decoding: line[(space + 1)...], as: UTF8.self)), value.isFinite
            else { continue }
            let labels = String(decoding: line[beginning.endIndex..<space], as: UTF8.self)
            samples.append(Sample(name: name, labels: labels, value: value))
        }
        return samples
    }

    /// Returns the sum of a metric over its labels; `nil` if it is absent.
    static func sum(_ samples: [Sample], of name: String) -> Double? {
        let values = samples.filter { $0.name == name }.map(\.value)
        return values.isEmpty ? nil : values.reduce(0, +)
    }

    /// Returns the sums of a metric by the value of a label.
    static func sums(_ samples: [Sample], of name: String, by label: String) -> [String: Double] {
        samples.filter { $0.name == name }.reduce(into: [:]) { sums, sample in
            if let value = sample.value(of: label) { sums[value, default: 0] += sample.value }
        }
    }
}
