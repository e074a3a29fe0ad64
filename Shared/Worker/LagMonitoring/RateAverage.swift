import Glibc

/// Exponentially weighted average of an offset's rate, with a time constant of one minute, as a kernel's load average.
struct RateAverage: Sendable {
    private static let timeConstant = 60.0

    private(set) var last: Int64?
    private var milliseconds: Int64 = 0
    /// `nil` before the second sample.
    private(set) var perSecond: Double?

    /// - Parameters:
    ///   - offset: `nil` if unknown. An offset that moved backwards counts as no growth.
    ///   - time: In milliseconds, later than the previous ones.
    mutating func take(_ offset: Int64?, at time: Int64) {
        defer { if let offset { (last, milliseconds) = (offset, time) } }
        guard let offset, let last, time > milliseconds else { return }
        let seconds = Double(time - milliseconds) / 1_000
        let now = Double(max(0, offset - last)) / seconds
        guard let before = perSecond else {
            perSecond = now
            return
        }
        perSecond = now + (before - now) * exp(-seconds / Self.timeConstant)
    }
}
