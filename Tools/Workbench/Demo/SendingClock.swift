/// How long a device waits for answers: from the first try of what it sends to the answer, however often it tries.
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

    /// The longest since it was asked the last time; one that goes on counts, up to now and anew from now.
    mutating func takeLongest(at now: ContinuousClock.Instant) -> Duration {
        defer {
            longest = .zero
            if since != nil { since = now }
        }
        return max(longest, since.map { now - $0 } ?? .zero)
    }
}
