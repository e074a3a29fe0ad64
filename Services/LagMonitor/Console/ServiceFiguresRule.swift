import Essentials

/// Parses a service's metrics in Prometheus' text format.
enum ServiceFiguresRule {
    /// The limit of parsed lines.
    static let lineCountMax = 20_000

    /// Returns the sums of metrics over their labels; absent metrics are omitted.
    static func sums(_ text: some Sequence<UInt8>, of names: Set<String>) -> [String: Double] {
        var sums: [String: Double] = [:]
        for line in Array(text).split(separator: UInt8(ascii: "\n"), maxSplits: lineCountMax) {
            guard line.first != UInt8(ascii: "#"), line.count < 4_096 else { continue }
            let beginning = line.prefix { $0 != UInt8(ascii: "{") && $0 != UInt8(ascii: " ") }
            let name = String(decoding: beginning, as: UTF8.self)
            guard names.contains(name), let space = line.lastIndex(of: UInt8(ascii: " ")),
                let value = Double(String(decoding: line[(space + 1)...], as: UTF8.self)), value.isFinite
            else { continue }
            sums[name, default: 0] += value
        }
        return sums
    }
}
