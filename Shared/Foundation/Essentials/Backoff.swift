/// How long to wait before the next attempt: exponential growth, full jitter, bounded.
///
/// Full jitter (a wait between nothing and the bound, evenly spread) keeps clients that failed together from
/// coming back together. Source: "Exponential Backoff And Jitter", AWS Architecture Blog, 2015.
package struct Backoff: Sendable, Equatable {
    package let first: Duration
    package let waitMax: Duration
    /// How many attempts have failed in a row.
    package private(set) var failedCount = 0

    package init(first: Duration = .milliseconds(200), waitMax: Duration = .seconds(30)) {
        self.first = first
        self.waitMax = waitMax
    }

    /// Counts a failure.
    ///
    /// - Parameter random: From 0 up to 1.
    /// - Returns: The wait before the next attempt, at most `waitMax`.
    package mutating func failed(random: Double) -> Duration {
        let ceiling = min(waitMax, first * (1 << min(failedCount, 20)))
        failedCount += 1
        return ceiling * min(max(random, 0), 1)
    }

    /// An attempt worked: the next failure starts from `first` again.
    package mutating func succeeded() { failedCount = 0 }
}
