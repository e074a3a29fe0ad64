/// Exponential backoff with full jitter and a maximum.
///
/// Full jitter (a wait between zero and the current maximum, uniformly distributed) prevents clients that failed
/// together from retrying together. Source: "Exponential Backoff And Jitter", AWS Architecture Blog, 2015.
package struct Backoff: Sendable, Equatable {
    package let first: Duration
    package let waitMax: Duration
    /// The number of consecutive failures.
    package private(set) var failedCount = 0

    package init(first: Duration = .milliseconds(200), waitMax: Duration = .seconds(30)) {
        self.first = first
        self.waitMax = waitMax
    }

    /// Counts a failure.
    ///
    /// - Parameter random: A number from 0 up to, not including, 1.
    /// - Returns: The wait before the next attempt, at most `waitMax`.
    package mutating func failed(random: Double) -> Duration {
        let ceiling = min(waitMax, first * (1 << min(failedCount, 20)))
        failedCount += 1
        return ceiling * min(max(random, 0), 1)
    }

    /// Records a success: the next failure starts from `first`.
    package mutating func succeeded() { failedCount = 0 }
}
