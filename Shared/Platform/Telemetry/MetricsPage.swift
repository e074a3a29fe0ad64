package import NIOCore

/// Values that are written anew each time they are looked at: for what a process sees of others, whose labels come and
/// go. Their number is whoever writes them's to bound.
///
/// It is text from the beginning on, which a scrape sends as it is.
package struct MetricsPage: Sendable {
    /// Labels as text: made once for all series that have them.
    package struct Labels: Sendable {
        fileprivate let text: String

        /// - Parameter labels: Names and values.
        package init(_ labels: [(String, String)]) { text = PrometheusText.labels(labels) }

        fileprivate init(text: String) { self.text = text }
    }

    /// Labels of which one is a number that changes from series to series.
    package struct NumberedLabels: Sendable {
        private let head: Substring
        private let tail: Substring

        /// - Parameters:
        ///   - labels: Those that stay the same.
        ///   - name: Of that which changes.
        package init(_ labels: [(String, String)], numbered name: String) {
            let hole = "\u{0}"
            let text = PrometheusText.labels(labels + [(name, hole)])
            let parts = text.split(separator: hole, maxSplits: 1, omittingEmptySubsequences: false)
            (head, tail) = (parts[0], parts[1])
        }

        package subscript(number: Int32) -> Labels { Labels(text: head + String(number) + tail) }
    }

    private var families: [String: ByteBuffer] = [:]

    package init() {}

    /// - Parameters:
    ///   - name: As in Prometheus' text; one that ends in `_total` is a counter, every other a gauge.
    ///   - labels: Names and values.
    package mutating func add(_ name: String, _ labels: [(String, String)], _ value: Double) {
        add(name, Labels(labels), value)
    }

    /// The same with labels that were made before.
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

    /// Its text, family by family.
    package var parts: [ByteBuffer] { families.sorted { $0.key < $1.key }.map(\.value) }
}
