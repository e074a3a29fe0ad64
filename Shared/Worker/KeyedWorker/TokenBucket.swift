/// A token bucket: `perSecond` tokens are added per second, and it holds those of one second, at least one. A value
/// without a clock.
struct TokenBucket: Sendable, Equatable {
    let perSecond: Double
    private var level: Double
    private var filledAt: ContinuousClock.Instant

    /// Starts full.
    init(perSecond: Double, now: ContinuousClock.Instant) {
        self.perSecond = perSecond
        level = max(1, perSecond)
        filledAt = now
    }

    /// A bucket with another rate that keeps the tokens, up to its size.
    func changed(to perSecond: Double, now: ContinuousClock.Instant) -> TokenBucket {
        var bucket = TokenBucket(perSecond: perSecond, now: now)
        var old = self
        old.fill(now: now)
        bucket.level = min(old.level, bucket.level)
        return bucket
    }

    /// Takes a token if there is one.
    mutating func take(now: ContinuousClock.Instant) -> Bool {
        fill(now: now)
        guard level >= 1 else { return false }
        level -= 1
        return true
    }

    func has(now: ContinuousClock.Instant) -> Bool {
        var bucket = self
        return bucket.take(now: now)
    }

    /// Whether the bucket equals a new one.
    func isFull(now: ContinuousClock.Instant) -> Bool {
        var bucket = self
        bucket.fill(now: now)
        return bucket.level >= max(1, perSecond)
    }

    private mutating func fill(now: ContinuousClock.Instant) {
        guard now > filledAt else { return }
        let passed: Duration = now - filledAt
        level = min(max(1, perSecond), level + perSecond * (passed / .seconds(1)))
        filledAt = now
    }
}

/// Rate limits of calls to an environment's other system; `nil`: unlimited.
package struct CallRateLimits: Sendable, Equatable {
    /// Calls per second of the environment.
    package var perSecond: Double?
    /// Calls per second of each person.
    package var perPersonAndSecond: Double?

    package init(perSecond: Double? = nil, perPersonAndSecond: Double? = nil) {
        self.perSecond = perSecond
        self.perPersonAndSecond = perPersonAndSecond
    }

    /// A worker's share of the limits.
    func times(_ share: Double) -> CallRateLimits {
        CallRateLimits(
            perSecond: perSecond.map { $0 * share }, perPersonAndSecond: perPersonAndSecond.map { $0 * share })
    }
}
