/// When the demo has looked often enough.
///
/// Devices and realms are read one after the other while others may still write: a difference counts only when it is
/// still there at the next look. How long one look takes says nothing.
struct VerdictLooks {
    /// From when on differences do not go away by themselves any more.
    let settled: ContinuousClock.Instant
    private var last: [Verdict.Difference]?
    private var count = 0

    /// So many looks are enough whatever they show.
    static let countMax = 200

    init(settled: ContinuousClock.Instant) { self.settled = settled }

    /// - Parameters:
    ///   - differences: What this look found.
    ///   - now: When it was over.
    mutating func areEnough(_ differences: [Verdict.Difference], now: ContinuousClock.Instant) -> Bool {
        defer { (last, count) = (differences, count + 1) }
        return differences.isEmpty || now >= settled && differences == last || count + 1 >= Self.countMax
    }
}
