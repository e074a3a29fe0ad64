/// Measures how long a device waits for responses: from the first attempt of a request, including retries.
struct SendingClock {
    private var since: ContinuousClock.Instant?
    private var longest = Duration.zero

    /// A try; the first one counts.
    mutating func begin(at now: ContinuousClock.Instant) { since = since ?? now }

    /// There is nothing to send.
    mutating func giveUp() { since = nil }

    mutating func end(at now: ContinuousClock.Instant) {
        longest = max(longest, since.map { now - $0 } ?? .zero)
        since = nil
    }

    /// Returns the longest time since the last call. A current wait counts up to now, and from now on again.
    mutating func takeLongest(at now: ContinuousClock.Instant) -> Duration {
        defer {
            longest = .zero
            if since != nil { since = now }
        }
        return max(longest, since.map { now - $0 } ?? .zero)
    }
}
