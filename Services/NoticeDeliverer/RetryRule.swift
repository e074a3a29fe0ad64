import Essentials

/// The backoff of failed deliveries.
enum RetryRule {
    /// Maximum backoff. A receiver may request more.
    static let waitMax = Duration.seconds(3_600)
    /// Maximum of the `Retry-After` that is honoured.
    static let retryAfterMax = Duration.seconds(86_400)

    /// - Parameters:
    ///   - failureCount: Number of consecutive failures including the last one; 1 or more.
    ///   - first: Delay after the first failure.
    ///   - retryAfter: The delay that the receiver requests.
    ///   - jitter: From 0 up to 1: spreads retries of shipments that failed together.
    static func wait(
        after failureCount: Int, first: Duration, retryAfter: Duration?, jitter: Double
    ) -> Duration {
        let ceiling = min(waitMax, first * (1 << min(max(failureCount - 1, 0), 20)))
        let own = ceiling * (0.5 + 0.5 * min(max(jitter, 0), 1))
        return max(own, min(retryAfter ?? .zero, retryAfterMax))
    }
}
