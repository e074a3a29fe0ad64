import Essentials

/// When what was not delivered is tried again.
enum RetryRule {
    /// No wait of ours is longer; a receiver may ask for more.
    static let waitMax = Duration.seconds(3_600)
    /// The longest that a receiver may ask for.
    static let askedMax = Duration.seconds(86_400)

    /// - Parameters:
    ///   - failureCount: How often it failed in a row, this time included; 1 or more.
    ///   - first: The wait after the first time.
    ///   - asked: How long the receiver asks to be left alone.
    ///   - chance: From 0 up to 1: what failed together does not come back together.
    static func wait(
        after failureCount: Int, first: Duration, asked: Duration?, chance: Double
    ) -> Duration {
        let ceiling = min(waitMax, first * (1 << min(max(failureCount - 1, 0), 20)))
        let own = ceiling * (0.5 + 0.5 * min(max(chance, 0), 1))
        return max(own, min(asked ?? .zero, askedMax))
    }
}
