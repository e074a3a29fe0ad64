/// Decides when differences are final.
///
/// Devices and realms are read sequentially while services may still write: a difference counts only if the next
/// comparison has it too. The duration of a comparison does not matter.
struct VerdictSettling {
    /// Maximum time of unchanged differences; a change counts as progress.
    let settleMax: Duration
    private var settled: ContinuousClock.Instant?
    private var last: [Verdict.Difference]?
    private var count = 0

    /// The maximum number of comparisons, even if differences still change.
    static let countMax = 400

    init(settleMax: Duration) { self.settleMax = settleMax }

    /// - Parameters:
    ///   - differences: The differences of this comparison.
    ///   - now: The end of the comparison.
    mutating func areFinal(_ differences: [Verdict.Difference], now: ContinuousClock.Instant) -> Bool {
        count += 1
        let isChanged = differences != last
        if isChanged { (last, settled) = (differences, now + settleMax) }
        let isFinal = !isChanged && settled.map { now >= $0 } ?? false
        return differences.isEmpty || isFinal || count >= Self.countMax
    }
}

extension Verdict {
    /// Compares until there are no differences, or until they no longer change.
    ///
    /// - Parameters:
    ///   - settleMax: Maximum time of unchanged differences.
    ///   - onRepeat: Called with differences that are compared again.
    static func settled(
        within settleMax: Duration, onRepeat: (Verdict) -> Void = { _ in }, _ compare: () async throws -> Verdict
    ) async throws -> Verdict {
        var settling = VerdictSettling(settleMax: settleMax)
        while true {
            let verdict = try await compare()
            if settling.areFinal(verdict.differences, now: .now) { return verdict }
            onRepeat(verdict)
            try await Task.sleep(for: .seconds(1))
        }
    }
}
