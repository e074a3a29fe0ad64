/// When the demo has looked often enough.
///
/// Devices and realms are read one after the other while others may still write: a difference counts only when it is
/// still there at the next look. How long one look takes says nothing.
struct VerdictLooks {
    /// Maximum time that differences may stay the same before they are final: while they change, there is progress.
    let settleMax: Duration
    private var settled: ContinuousClock.Instant?
    private var last: [Verdict.Difference]?
    private var count = 0

    /// The maximum number of comparisons, even if differences still change.
    static let countMax = 400

    init(settleMax: Duration) { self.settleMax = settleMax }

    /// - Parameters:
    ///   - differences: What this look found.
    ///   - now: When it was over.
    mutating func areEnough(_ differences: [Verdict.Difference], now: ContinuousClock.Instant) -> Bool {
        count += 1
        let isChanged = differences != last
        if isChanged { (last, settled) = (differences, now + settleMax) }
        let isFinal = !isChanged && settled.map { now >= $0 } ?? false
        return differences.isEmpty || isFinal || count >= Self.countMax
    }
}
