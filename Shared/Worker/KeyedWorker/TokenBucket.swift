/// How often something may happen: so many times a second, and as many at once as come together in a second, at least
/// one. A value without a clock.
struct TokenBucket: Sendable, Equatable {
    let perSecond: Double
    private var level: Double
    private var filledAt: ContinuousClock.Instant

    /// Full at first.
    init(perSecond: Double, now: ContinuousClock.Instant) {
        self.perSecond = perSecond
        level = max(1, perSecond)
        filledAt = now
    }

    /// Another rate from now on; what was saved up stays, as far as it holds.
    func changed(to perSecond: Double, now: ContinuousClock.Instant) -> TokenBucket {
        var bucket = TokenBucket(perSecond: perSecond, now: now)
        var old = self
        old.fill(now: now)
        bucket.level = min(old.level, bucket.level)
        return bucket
    }

    /// Takes one, if there is one.
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

    /// Nothing was taken for so long that it is as a new one.
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

/// How fast an environment's other system may be called; `nil`: as fast as it answers.
package struct CallRates: Sendable, Equatable {
    /// Calls a second for all its people together.
    package var perSecond: Double?
    /// Calls a second for each of them.
    package var perPersonAndSecond: Double?

    package init(perSecond: Double? = nil, perPersonAndSecond: Double? = nil) {
        self.perSecond = perSecond
        self.perPersonAndSecond = perPersonAndSecond
    }

    /// A worker's part of it.
    func times(_ share: Double) -> CallRates {
        CallRates(perSecond: perSecond.map { $0 * share }, perPersonAndSecond: perPersonAndSecond.map { $0 * share })
    }
}
