/// Gauges that are written anew each time they are looked at: for what a process sees of others, whose labels come and
/// go. Their number is whoever writes them's to bound.
package struct MetricsPage: Sendable {
    private var families: [String: [String]] = [:]

    package init() {}

    /// - Parameters:
    ///   - name: As in Prometheus' text.
    ///   - labels: Names and values.
    package mutating func add(_ name: String, _ labels: [(String, String)], _ value: Double) {
        families[name, default: []].append("\(PrometheusText.labels(labels)) \(PrometheusText.number(value))\n")
    }

    var text: String {
        var text = ""
        for (name, lines) in families.sorted(by: { $0.key < $1.key }) {
            text += PrometheusText.head(name, MetricsRegistry.Family.Kind.gauge.rawValue)
            for line in lines { text += name + line }
        }
        return text
    }
}
