/// Measures the longest of several waits, such as that from the first attempt of a request, including retries, until
/// its response.
struct WaitClock {
    private var since: ContinuousClock.Instant?
    private var longest = Duration.zero
    /// Number of completed waits.
    private(set) var count = 0

    /// Begins a wait, unless one is in progress.
    mutating func begin() { since = since ?? .now }

    /// There is nothing to wait for.
    mutating func giveUp() { since = nil }

    mutating func end() {
        longest = max(longest, since.map { ContinuousClock.now - $0 } ?? .zero)
        since = nil
        count += 1
    }

    /// Returns the longest time since the last call. A current wait counts up to now, and from now on again.
    mutating func takeLongest() -> Duration {
        let now = ContinuousClock.now
        defer {
            longest = .zero
            if since != nil { since = now }
        }
        return max(longest, since.map { now - $0 } ?? .zero)
    }
}
