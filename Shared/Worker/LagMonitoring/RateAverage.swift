import Glibc

/// Exponentially weighted average of a rate, with a time constant of one minute, as a kernel's load average. It covers
/// the observed time only: the first interval does not stand for the time before it.
struct RateAverage: Sendable {
    private static let timeConstant = 60.0

    /// Time of the last interval's end; `nil` before the first sample.
    private var milliseconds: Int64?
    private var pendingCount: Int64 = 0
    private var weightedRate = 0.0
    /// Weight of the observed time, which approaches 1.
    private var weight = 0.0

    /// `nil` before the second sample.
    var perSecond: Double? { weight > 0 ? weightedRate / weight : nil }

    /// - Parameters:
    ///   - count: Number of messages since the previous sample; ignored in the first one.
    ///   - time: In milliseconds. Messages of a sample that is not later than the previous one count in the next one.
    mutating func take(_ count: Int64, at time: Int64) {
        guard let last = milliseconds else {
            milliseconds = time
            return
        }
        pendingCount += count
        guard time > last else { return }
        let seconds = Double(time - last) / 1_000
        let decay = exp(-seconds / Self.timeConstant)
        weightedRate = weightedRate * decay + Double(pendingCount) / seconds * (1 - decay)
        weight = weight * decay + (1 - decay)
        (milliseconds, pendingCount) = (time, 0)
    }
}
