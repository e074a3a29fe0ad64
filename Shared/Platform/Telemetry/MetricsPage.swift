package import NIOCore

/// Values that are rewritten for each scrape, for metrics of other systems, whose labels appear and disappear. The
/// writer limits their number.
///
/// The values are stored as text, which a scrape sends unchanged.
package struct MetricsPage: Sendable {
    /// Labels as text, shared by all series that have them.
    package struct Labels: Sendable {
        fileprivate let text: String

        /// - Parameter labels: Names and values.
        package init(_ labels: [(String, String)]) { text = PrometheusText.labels(labels) }

        fileprivate init(text: String) { self.text = text }
    }

    /// Labels of which one is a number that differs between series.
    package struct NumberedLabels: Sendable {
        private let head: Substring
        private let tail: Substring

        /// - Parameters:
        ///   - labels: The constant labels.
        ///   - name: The name of the numbered label.
        package init(_ labels: [(String, String)], numbered name: String) {
            let placeholder = "\u{0}"
            let text = PrometheusText.labels(labels + [(name, placeholder)])
            let parts = text.split(separator: placeholder, maxSplits: 1, omittingEmptySubsequences: false)
            (head, tail) = (parts[0], parts[1])
        }

        package subscript(number: Int32) -> Labels { Labels(text: head + String(number) + tail) }
    }

    private var families: [String: ByteBuffer] = [:]

    package init() {}

    /// - Parameters:
    ///   - name: The Prometheus name; a name that ends in `_total` is a counter, any other a gauge.
    ///   - labels: Names and values.
    package mutating func add(_ name: String, _ labels: [(String, String)], _ value: Double) {
        add(name, Labels(labels), value)
    }

    /// Adds a value with prepared labels.
    package mutating func add(_ name: String, _ labels: Labels, _ value: Double) {
        Self.write(name, labels, value, to: &families[name, default: Self.begin(name)])
    }

    private static func write(_ name: String, _ labels: Labels, _ value: Double, to buffer: inout ByteBuffer) {
        buffer.writeString(name)
        buffer.writeString(labels.text)
        buffer.writeInteger(UInt8(ascii: " "))
        buffer.writeString(PrometheusText.number(value))
        buffer.writeInteger(UInt8(ascii: "\n"))
    }

    private static func begin(_ name: String) -> ByteBuffer {
        let kind: MetricsRegistry.Family.Kind = name.hasSuffix("_total") ? .counter : .gauge
        return ByteBuffer(string: PrometheusText.head(name, kind.rawValue))
    }

    /// The text, family by family.
    package var parts: [ByteBuffer] { families.sorted { $0.key < $1.key }.map(\.value) }
}
