import LagMonitoring

/// One hour of lag and message counts per group and topic, in constant memory: a fixed number of points for a limited
/// number of series, independent of partitions.
///
/// A point covers an interval between fixed times, and is returned only once it is complete, so it never changes. Its
/// message counts are exact: their sum over time is the number of messages.
struct SampleHistory: Sendable {
    /// The number of points per series: one per 30 s of an hour.
    static let pointCountMax = 120
    static let stepMilliseconds: Int64 = 30_000
    /// The limit of series; further ones have no history.
    static let seriesCountMax = 500

    /// The key of a series.
    struct Name: Hashable, Comparable, Sendable {
        let group: String
        let topic: String

        static func < (left: Name, right: Name) -> Bool { (left.topic, left.group) < (right.topic, right.group) }
    }

    /// An interval of a series.
    struct Point: Equatable, Sendable {
        /// The maxima of the interval's snapshots; `nil` without a snapshot, or if unknown.
        var lag: Int64?
        var seconds: Double?
        /// The number of messages; `nil` if unknown.
        var writtenCount: Int64?
        var consumedCount: Int64?
    }

    private var series: [Name: Series] = [:]
    /// The time of the last snapshot.
    private var last: Int64?
    /// The number of series beyond the limit.
    private(set) var omittedCount = 0

    var names: [Name] { series.keys.sorted() }

    /// Adds a snapshot. If the clock was set back by more than a point's interval, the history begins again.
    mutating func add(_ sums: [LagSum], at time: Int64) {
        if let last, time < last - Self.stepMilliseconds { self = SampleHistory() }
        let milliseconds = max(time, last ?? time)
        // A new series counts messages since the previous snapshot: its partitions were created after it.
        let since = last ?? milliseconds
        advance(to: milliseconds)
        omittedCount = 0
        for sum in sums {
            let name = Name(group: sum.group, topic: sum.topic)
            guard series[name] != nil || series.count < Self.seriesCountMax else {
                omittedCount += 1
                continue
            }
            series[name, default: Series(since: since)].add(sum, at: milliseconds)
        }
        last = milliseconds
    }

    /// Clears points older than an hour, and removes series without a snapshot.
    private mutating func advance(to milliseconds: Int64) {
        guard let last else { return }
        let (old, new) = (last / Self.stepMilliseconds, milliseconds / Self.stepMilliseconds)
        guard new > old else { return }
        let cleared = max(old + 1, new - Int64(Self.pointCountMax))...new
        for name in series.keys { series[name]?.clear(cleared) }
        series = series.filter { !$0.value.isEmpty }
    }

    /// Returns the numbers of the intervals of the hour before `milliseconds`, or before the last snapshot if that is
    /// later. A number is the interval's beginning, divided by its length.
    func hour(until milliseconds: Int64) -> Range<Int64> {
        let end = max(milliseconds, last ?? milliseconds) / Self.stepMilliseconds
        return end - Int64(Self.pointCountMax)..<end
    }

    /// Returns the points of these intervals; those that are not complete yet have unknown values.
    func points(of name: Name, in numbers: Range<Int64>) -> [Point] {
        guard let series = series[name], let last else { return [] }
        let kept = last / Self.stepMilliseconds - Int64(Self.pointCountMax)
        return numbers.map { $0 < kept ? Point() : series.point($0) }
    }
}

extension SampleHistory {
    /// The points of a group and topic.
    private struct Series: Sendable {
        private static let step = SampleHistory.stepMilliseconds
        /// The complete points of an hour, and the current one.
        private static let size = Int64(SampleHistory.pointCountMax + 1)

        /// By number modulo the size.
        private var points = Array(repeating: Point(), count: Int(Self.size))
        /// The time of the last snapshot with this series.
        private var last: Int64

        /// - Parameter last: The time since which the first snapshot counts messages.
        init(since last: Int64) { self.last = last }

        var isEmpty: Bool { points.allSatisfy { $0.lag == nil } }

        private static func slot(_ number: Int64) -> Int { Int(number % size) }

        /// Adds a snapshot. Its messages are distributed evenly over the time since the previous one.
        mutating func add(_ sum: LagSum, at time: Int64) {
            let end = time / Self.step
            for number in max(last / Self.step, end - Self.size + 1)...end {
                func share(_ count: Int64) -> Int64 {
                    counted(count, before: (number + 1) * Self.step, until: time)
                        - counted(count, before: number * Self.step, until: time)
                }
                let slot = Self.slot(number)
                points[slot].writtenCount = (points[slot].writtenCount ?? 0) + share(sum.writtenCount)
                points[slot].consumedCount = (points[slot].consumedCount ?? 0) + share(sum.consumedCount)
            }
            let slot = Self.slot(end)
            points[slot].lag = max(points[slot].lag ?? 0, sum.count)
            if let seconds = sum.secondsMax ?? (sum.count == 0 ? 0 : nil) {
                points[slot].seconds = max(points[slot].seconds ?? 0, seconds)
            }
            last = time
        }

        /// The part of the messages between the last snapshot and `time` that belongs before `moment`: a whole number,
        /// so that the sum of all parts is exact.
        private func counted(_ count: Int64, before moment: Int64, until time: Int64) -> Int64 {
            if moment <= last { return 0 }
            if moment >= time { return count }
            return Int64(Double(count) * (Double(moment - last) / Double(time - last)))
        }

        mutating func clear(_ numbers: ClosedRange<Int64>) {
            for number in numbers { points[Self.slot(number)] = Point() }
        }

        func point(_ number: Int64) -> Point { (number + 1) * Self.step <= last ? points[Self.slot(number)] : Point() }
    }
}
