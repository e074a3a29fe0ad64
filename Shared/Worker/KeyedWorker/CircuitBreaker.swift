package import Model

/// A circuit breaker for one back end. It opens after calls of `failuresMax` different keys in a row found the back end
/// unavailable. After a backoff one call probes it; if that succeeds, the number of calls ramps up. A pause requested
/// by the back end (Retry-After) is kept; the number of calls after it depends on the successes since the previous
/// request. A value without a clock: times are parameters.
///
/// One key that fails repeatedly does not open the circuit: the fault may be its own, and the key has its own backoff.
package struct CircuitBreaker: Sendable, Equatable {
    package enum State: Sendable, Equatable {
        /// Keys whose calls failed since the last success.
        case closed(failed: Set<EventSubject>)
        /// No calls until then.
        case open(until: ContinuousClock.Instant, wait: Duration)
        /// The back end requested a pause: no calls until then, even if earlier calls succeed. Then the circuit closes.
        case backingOff(until: ContinuousClock.Instant)
        /// One probing call is in flight.
        case halfOpen(wait: Duration)
    }

    package private(set) var state = State.closed(failed: [])
    /// Maximum number of calls in flight while the back end recovers; `nil`: limited by slots only.
    package private(set) var callsMax: Int?
    private var succeededAt: [CallKind: ContinuousClock.Instant] = [:]
    /// Number of successes, and of requests for a pause, since the last outage or the end of the last requested pause.
    private var successCount = 0
    private var backoffRequestCount = 0
    package let failuresMax: Int
    package let waitMin: Duration
    package let waitMax: Duration

    /// Number of calls in flight after a successful probe.
    static let callsMin = 2
    /// The limit is lifted once it reaches this number.
    static let callsLimitMax = 256

    package init(failuresMax: Int = 10, waitMin: Duration = .seconds(2), waitMax: Duration = .seconds(60)) {
        self.failuresMax = failuresMax
        self.waitMin = waitMin
        self.waitMax = waitMax
    }

    /// Whether a key's call is admitted.
    package enum Admission: Equatable { case call, probe, wait(Duration) }

    package mutating func admit(now: ContinuousClock.Instant) -> Admission {
        endBackoff(now: now)
        switch state {
        case .closed: return .call
        case .open(let until, let wait):
            guard now >= until else { return .wait(until - now) }
            state = .halfOpen(wait: wait)
            return .probe
        case .backingOff(let until): return .wait(until - now)
        case .halfOpen(let wait): return .wait(wait)
        }
    }

    /// Closes the circuit when the requested pause is over.
    ///
    /// - Returns: Whether that has just happened.
    @discardableResult
    package mutating func endBackoff(now: ContinuousClock.Instant) -> Bool {
        guard let until = backoffEnd, now >= until else { return false }
        state = .closed(failed: [])
        (successCount, backoffRequestCount) = (0, 0)
        return true
    }

    /// The number of successes, at least one; doubled if successes prevail.
    private var callsMaxAfterBackoff: Int? {
        Self.limit(successCount >= backoffRequestCount ? 2 * successCount : successCount)
    }

    private static func limit(_ count: Int) -> Int? { count < callsLimitMax ? max(1, count) : nil }

    /// End of the requested pause.
    package var backoffEnd: ContinuousClock.Instant? {
        if case .backingOff(let until) = state { until } else { nil }
    }

    /// Records a call that the back end answered, even with an error about the key: the back end is available.
    ///
    /// - Returns: Whether it has recovered: all keys that wait for it are due.
    package mutating func recordSuccess(_ kind: CallKind, now: ContinuousClock.Instant) -> Bool {
        succeededAt[kind] = now
        successCount = min(successCount + 1, Self.callsLimitMax)
        switch state {
        case .closed:
            state = .closed(failed: [])
            callsMax = callsMax.flatMap { Self.limit($0 + 1) }
            return false
        case .open, .halfOpen:
            state = .closed(failed: [])
            callsMax = Self.callsMin
            successCount = 1
            return true
        // These calls started before the back end requested the pause.
        case .backingOff:
            callsMax = callsMaxAfterBackoff
            return false
        }
    }

    /// The back end was unreachable or reported that it is unavailable.
    ///
    /// - Returns: Whether the circuit opened.
    package mutating func recordFailure(of key: EventSubject, now: ContinuousClock.Instant) -> Bool {
        switch state {
        case .closed(var failed):
            failed.insert(key)
            callsMax = callsMax.map { max(1, $0 / 2) }
            guard failed.count >= failuresMax else {
                state = .closed(failed: failed)
                return false
            }
            state = .open(until: now + waitMin, wait: waitMin)
            (successCount, backoffRequestCount) = (0, 0)
            return true
        case .halfOpen(let wait):
            let longer = min(wait * 2, waitMax)
            state = .open(until: now + longer, wait: longer)
            return false
        case .open, .backingOff: return false
        }
    }

    /// The back end requested a pause of this duration.
    ///
    /// - Returns: Whether the circuit was closed before.
    package mutating func backOff(for wait: Duration, now: ContinuousClock.Instant) -> Bool {
        var until = now + wait
        let wasClosed = isClosed
        if let earlier = backoffEnd { until = max(until, earlier) }
        backoffRequestCount += 1
        callsMax = callsMaxAfterBackoff
        state = .backingOff(until: until)
        return wasClosed
    }

    /// The probing key needed no call: another key may probe.
    package mutating func releaseProbe(now: ContinuousClock.Instant) {
        if case .halfOpen(let wait) = state { state = .open(until: now, wait: wait) }
    }

    /// Whether the next call would be admitted as a probe.
    package func mayProbe(now: ContinuousClock.Instant) -> Bool {
        switch state {
        case .open(let until, _): now >= until
        case .closed, .backingOff, .halfOpen: false
        }
    }

    /// A probe is in flight.
    package var isHalfOpen: Bool { if case .halfOpen = state { true } else { false } }

    package var isClosed: Bool { if case .closed = state { true } else { false } }

    /// Whether a call of this kind has succeeded lately: a failure may then be the key's own fault.
    package func hasRecentSuccess(for kind: CallKind, now: ContinuousClock.Instant) -> Bool {
        guard isClosed, let succeededAt = succeededAt[kind] else { return false }
        return now < succeededAt + waitMax
    }
}
