import LagMonitoring

/// One hour of lag and rates per group and topic, in constant memory: a fixed number of samples for a limited number of
/// series, independent of partitions.
struct SampleHistory: Sendable {
    /// The number of samples per series: one per 10 s of an hour.
    static let sampleCountMax = 360
    static let stepMilliseconds: Int64 = 10_000
    /// The limit of series; further ones have no history.
    static let seriesCountMax = 500

    /// The key of a series.
    struct Name: Hashable, Comparable, Sendable {
        let group: String
        let topic: String

        static func < (left: Name, right: Name) -> Bool { (left.topic, left.group) < (right.topic, right.group) }
    }

    /// One sample of a series; unknown values are NaN.
    struct Sample: Equatable, Sendable {
        var lag = Float.nan
        var seconds = Float.nan
        var inRate = Float.nan
        var outRate = Float.nan
    }

    private var series: [Name: [Sample]] = [:]
    /// The number of the last sampled interval of 10 s.
    private var last: Int64?
    /// The number of series beyond the limit.
    private(set) var omittedCount = 0

    var names: [Name] { series.keys.sorted() }

    /// Adds a snapshot. Within an interval of 10 s the last one counts; snapshots from the past are ignored.
    mutating func add(_ sums: [LagSum], at milliseconds: Int64) {
        let number = milliseconds / Self.stepMilliseconds
        guard number >= last ?? number else { return }
        advance(to: number)
        omittedCount = 0
        for sum in sums {
            let name = Name(group: sum.group, topic: sum.topic)
            guard series[name] != nil || series.count < Self.seriesCountMax else {
                omittedCount += 1
                continue
            }
            series[name, default: Array(repeating: Sample(), count: Self.sampleCountMax)][Self.slot(number)] = Sample(
                lag: Float(sum.count), seconds: Float(sum.secondsMax ?? 0), inRate: Float(sum.inPerSecond ?? .nan),
                outRate: Float(sum.outPerSecond ?? .nan))
        }
    }

    /// Clears samples older than an hour, and removes empty series.
    private mutating func advance(to number: Int64) {
        let old = last ?? number
        last = number
        let count = min(number - old, Int64(Self.sampleCountMax))
        guard count > 0 else { return }
        for name in series.keys {
            for skipped in (number - count + 1)...number { series[name]?[Self.slot(skipped)] = Sample() }
        }
        series = series.filter { $0.value.contains { !$0.lag.isNaN } }
    }

    private static func slot(_ number: Int64) -> Int { Int(number % Int64(sampleCountMax)) }

    /// Returns the hour of a series as `countMax` points, newest last: the maxima of lag and age, and the means of
    /// rates.
    func points(of name: Name, countMax: Int) -> [Sample] {
        guard let samples = series[name], let last, countMax > 0 else { return [] }
        let width = (Self.sampleCountMax + countMax - 1) / countMax
        let ordered = (1...Int64(Self.sampleCountMax)).map { samples[Self.slot(last + $0)] }
        return stride(from: 0, to: ordered.count, by: width).map { start in
            Self.merged(ordered[start..<min(start + width, ordered.count)])
        }
    }

    private static func merged(_ samples: ArraySlice<Sample>) -> Sample {
        func values(_ path: KeyPath<Sample, Float>) -> [Float] {
            samples.map { $0[keyPath: path] }.filter { !$0.isNaN }
        }
        func mean(_ values: [Float]) -> Float {
            values.isEmpty ? .nan : values.reduce(0, +) / Float(values.count)
        }
        return Sample(
            lag: values(\.lag).max() ?? .nan, seconds: values(\.seconds).max() ?? .nan, inRate: mean(values(\.inRate)),
            outRate: mean(values(\.outRate)))
    }
}
