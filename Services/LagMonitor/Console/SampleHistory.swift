import LagMonitoring

/// An hour of figures of each group on each topic, in a memory that does not grow: a fixed number of samples of a fixed
/// number of series, whatever partitions there are.
struct SampleHistory: Sendable {
    /// Samples of one series: one for every ten seconds of an hour.
    static let sampleCountMax = 360
    static let stepMilliseconds: Int64 = 10_000
    /// Groups' topics of which there is a history; of more there is none.
    static let seriesCountMax = 500

    /// What a series is of.
    struct Name: Hashable, Comparable, Sendable {
        let group: String
        let topic: String

        static func < (left: Name, right: Name) -> Bool { (left.topic, left.group) < (right.topic, right.group) }
    }

    /// One group on one topic at one time; what is not known is not a number.
    struct Sample: Equatable, Sendable {
        var lag = Float.nan
        var seconds = Float.nan
        var comes = Float.nan
        var goes = Float.nan
    }

    private var series: [Name: [Sample]] = [:]
    /// The number of the ten seconds that were sampled last.
    private var last: Int64?
    /// Series that found no place.
    private(set) var omittedCount = 0

    init() {}

    var names: [Name] { series.keys.sorted() }

    /// Takes in a look. Of several within ten seconds the last one counts; time that goes back changes nothing.
    mutating func take(_ sums: [LagSum], at milliseconds: Int64) {
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
                lag: Float(sum.count), seconds: Float(sum.secondsMax ?? 0), comes: Float(sum.comesPerSecond ?? .nan),
                goes: Float(sum.goesPerSecond ?? .nan))
        }
    }

    /// Clears what is older than an hour, and forgets series of which nothing is left.
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

    /// The hour of a series in `countMax` points, the newest last: of each point the most of the lags and ages in it,
    /// and the mean of the rates.
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
            lag: values(\.lag).max() ?? .nan, seconds: values(\.seconds).max() ?? .nan, comes: mean(values(\.comes)),
            goes: mean(values(\.goes)))
    }
}
