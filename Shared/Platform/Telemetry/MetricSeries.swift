import CoreMetrics
import Synchronization

/// A time series: a value, or a histogram's values.
protocol Series: AnyObject, Sendable {
    static var kind: MetricsRegistry.Family.Kind { get }
    func write(name: String, labels: String, to text: inout String)
}

final class CounterSeries: Series, CounterHandler {
    static let kind = MetricsRegistry.Family.Kind.counter
    private let value = Atomic<Int64>(0)

    func increment(by amount: Int64) { value.wrappingAdd(amount, ordering: .relaxed) }
    func reset() { value.store(0, ordering: .relaxed) }

    func write(name: String, labels: String, to text: inout String) {
        text += "\(name)\(labels) \(value.load(ordering: .relaxed))\n"
    }
}

/// A `Double` to which many threads can add.
struct AtomicDouble: ~Copyable {
    private let bits = Atomic<UInt64>(0)

    borrowing func load() -> Double { Double(bitPattern: bits.load(ordering: .relaxed)) }
    borrowing func store(_ value: Double) { bits.store(value.bitPattern, ordering: .relaxed) }

    borrowing func add(_ amount: Double) {
        var current = bits.load(ordering: .relaxed)
        while true {
            let next = (Double(bitPattern: current) + amount).bitPattern
            let (exchanged, original) = bits.weakCompareExchange(expected: current, desired: next, ordering: .relaxed)
            if exchanged { return }
            current = original
        }
    }
}

final class GaugeSeries: Series, RecorderHandler {
    static let kind = MetricsRegistry.Family.Kind.gauge
    private let value = AtomicDouble()

    func record(_ value: Int64) { self.value.store(Double(value)) }
    func record(_ value: Double) { self.value.store(value) }

    func write(name: String, labels: String, to text: inout String) {
        text += "\(name)\(labels) \(PrometheusText.number(value.load()))\n"
    }
}

final class HistogramSeries: Series, TimerHandler, RecorderHandler {
    static let kind = MetricsRegistry.Family.Kind.histogram
    static let boundCount = 16

    /// Bucket limits from 0.5 ms (a local transaction) to one minute (a slow back end).
    static let secondsBounds: InlineArray<16, Double> = [
        0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60,
    ]
    /// Bucket limits for sizes of batches and queues.
    static let countBounds: InlineArray<16, Double> = [
        1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000,
    ]

    private let bounds: InlineArray<16, Double>
    /// Not cumulative; the last bucket counts values above all limits.
    private let buckets = InlineArray<17, Atomic<Int64>> { _ in Atomic(0) }
    private let sum = AtomicDouble()

    init(bounds: InlineArray<16, Double>) { self.bounds = bounds }

    func recordNanoseconds(_ duration: Int64) { record(Double(duration) / 1e9) }
    func record(_ value: Int64) { record(Double(value)) }

    func record(_ value: Double) {
        guard value.isFinite else { return }
        var index = 0
        while index < Self.boundCount && value > bounds[index] { index += 1 }
        buckets[index].wrappingAdd(1, ordering: .relaxed)
        sum.add(value)
    }

    func write(name: String, labels: String, to text: inout String) {
        var total: Int64 = 0
        for index in 0...Self.boundCount {
            total += buckets[index].load(ordering: .relaxed)
            let bound = index < Self.boundCount ? PrometheusText.number(bounds[index]) : "+Inf"
            text += "\(name)_bucket\(PrometheusText.adding("le", bound, to: labels)) \(total)\n"
        }
        text += "\(name)_sum\(labels) \(PrometheusText.number(sum.load()))\n"
        text += "\(name)_count\(labels) \(total)\n"
    }
}
