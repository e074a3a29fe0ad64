package import CoreMetrics
package import NIOCore
import Synchronization

/// The process's metrics, exported as Prometheus text.
///
/// Recording is one atomic addition without a lock. Creating a metric takes a lock, so store created metrics. Names
/// follow OpenTelemetry (`messaging.client.consumed.messages`); dots become underscores, counters end in `_total` and
/// timers in `_seconds`.
package final class MetricsRegistry: MetricsFactory {
    /// Maximum number of series (name and labels); further ones are not stored, so that a label with unlimited values
    /// cannot exhaust memory.
    package static let seriesMax = 10_000

    private let families = Mutex<[String: Family]>([:])
    private let page = Mutex(MetricsPage())

    struct Family {
        enum Kind: String { case counter, gauge, histogram }
        var kind: Kind
        /// The series by label text, for example `{topic="entry.events"}`.
        var series: [String: any Series] = [:]
    }

    package init() {}

    private func series<S: Series>(_ name: String, _ dimensions: [(String, String)], _ make: () -> S) -> S {
        let labels = PrometheusText.labels(dimensions)
        return families.withLock { families in
            if let existing = families[name]?.series[labels] as? S { return existing }
            let new = make()
            let count = families.values.reduce(0) { $0 + $1.series.count }
            let isSameKind = families[name].map { $0.kind == S.kind } ?? true
            if count < Self.seriesMax && isSameKind {
                families[name, default: Family(kind: S.kind)].series[labels] = new
            }
            return new
        }
    }

    private func remove(_ handler: AnyObject) {
        families.withLock { families in
            for (name, family) in families {
                let remaining = family.series.filter { $0.value !== handler }
                guard remaining.count != family.series.count else { continue }
                if remaining.isEmpty { families[name] = nil } else { families[name]?.series = remaining }
            }
        }
    }

    /// Replaces the page that is exported in addition to recorded metrics.
    package func show(_ page: MetricsPage) { self.page.withLock { $0 = page } }

    /// Returns all metrics in Prometheus' text format, sorted, without those of the process itself.
    package func text() -> String { parts().map { String(buffer: $0) }.joined() }

    /// Returns the text in parts, without copying those of the page.
    package func parts() -> [ByteBuffer] {
        let families = families.withLock { $0 }
        var text = ""
        for (name, family) in families.sorted(by: { $0.key < $1.key }) {
            text += PrometheusText.head(name, family.kind.rawValue)
            for (labels, series) in family.series.sorted(by: { $0.key < $1.key }) {
                series.write(name: name, labels: labels, to: &text)
            }
        }
        return [ByteBuffer(string: text)] + page.withLock { $0 }.parts
    }
}

extension MetricsRegistry {
    package func makeCounter(label: String, dimensions: [(String, String)]) -> any CounterHandler {
        series(PrometheusText.name(label, suffix: "_total"), dimensions) { CounterSeries() }
    }

    package func makeRecorder(
        label: String, dimensions: [(String, String)], aggregate: Bool
    ) -> any RecorderHandler {
        aggregate
            ? series(PrometheusText.name(label), dimensions) { HistogramSeries(bounds: HistogramSeries.countBounds) }
            : series(PrometheusText.name(label), dimensions) { GaugeSeries() }
    }

    package func makeTimer(label: String, dimensions: [(String, String)]) -> any TimerHandler {
        series(PrometheusText.name(label, suffix: "_seconds"), dimensions) {
            HistogramSeries(bounds: HistogramSeries.secondsBounds)
        }
    }

    package func destroyCounter(_ handler: any CounterHandler) { remove(handler) }
    package func destroyRecorder(_ handler: any RecorderHandler) { remove(handler) }
    package func destroyTimer(_ handler: any TimerHandler) { remove(handler) }
}
