import Glibc

/// How fast an offset grows, of which the last minute counts most: what was a minute ago counts a third, as in the
/// load that a kernel tells.
struct Pace: Sendable {
    private static let secondsRemembered = 60.0

    private(set) var last: Int64?
    private var milliseconds: Int64 = 0
    /// `nil` before the second look.
    private(set) var perSecond: Double?

    /// - Parameters:
    ///   - offset: `nil`: it is not known. What went back did not grow.
    ///   - time: In milliseconds, later than those before.
    mutating func take(_ offset: Int64?, at time: Int64) {
        defer { if let offset { (last, milliseconds) = (offset, time) } }
        guard let offset, let last, time > milliseconds else { return }
        let seconds = Double(time - milliseconds) / 1_000
        let now = Double(max(0, offset - last)) / seconds
        guard let before = perSecond else {
            perSecond = now
            return
        }
        perSecond = now + (before - now) * exp(-seconds / Self.secondsRemembered)
    }
}
