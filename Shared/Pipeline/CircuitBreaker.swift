/// Whether a back end may be called: after `failuresMax` calls in a row that found it away, it is left alone for a
/// while; then one call probes it. A value without a clock: the time comes in.
package struct CircuitBreaker: Sendable, Equatable {
    package enum State: Sendable, Equatable {
        case closed(failureCount: Int)
        /// Nobody calls until then.
        case open(until: ContinuousClock.Instant, wait: Duration)
        /// One call is under way to find out.
        case halfOpen(wait: Duration)
    }

    package private(set) var state = State.closed(failureCount: 0)
    package let failuresMax: Int
    package let waitMin: Duration
    package let waitMax: Duration

    package init(failuresMax: Int = 10, waitMin: Duration = .seconds(2), waitMax: Duration = .seconds(60)) {
        self.failuresMax = failuresMax
        self.waitMin = waitMin
        self.waitMax = waitMax
    }

    /// What a key that needs a call does now.
    package enum Admission: Equatable { case call, probe, wait(Duration) }

    package mutating func admit(now: ContinuousClock.Instant) -> Admission {
        switch state {
        case .closed: return .call
        case .open(let until, let wait):
            guard now >= until else { return .wait(until - now) }
            state = .halfOpen(wait: wait)
            return .probe
        case .halfOpen(let wait): return .wait(wait)
        }
    }

    /// The back end answered, whatever it said.
    ///
    /// - Returns: Whether it had been away: all that waits for it may go on.
    package mutating func answered() -> Bool {
        defer { state = .closed(failureCount: 0) }
        switch state {
        case .closed: return false
        case .open, .halfOpen: return true
        }
    }

    /// The back end could not be reached, or said that it cannot work now.
    ///
    /// - Returns: Whether the circuit opened by it.
    package mutating func wasAway(now: ContinuousClock.Instant) -> Bool {
        switch state {
        case .closed(let count):
            guard count + 1 >= failuresMax else {
                state = .closed(failureCount: count + 1)
                return false
            }
            state = .open(until: now + waitMin, wait: waitMin)
            return true
        case .halfOpen(let wait):
            let longer = min(wait * 2, waitMax)
            state = .open(until: now + longer, wait: longer)
            return false
        case .open: return false
        }
    }

    /// The key that was to probe needed no call after all: another one may.
    package mutating func probeWasNotMade(now: ContinuousClock.Instant) {
        if case .halfOpen(let wait) = state { state = .open(until: now, wait: wait) }
    }

    /// Whether the next key that needs a call would be let through.
    package func mayProbe(now: ContinuousClock.Instant) -> Bool {
        if case .open(let until, _) = state { now >= until } else { false }
    }

    package var isClosed: Bool { if case .closed = state { true } else { false } }
}
