package import Model

/// Whether a back end may be called: after the calls of `failuresMax` different keys in a row found it away, it is left
/// alone for a while; then one call probes it, and when it answers the calls begin slowly. A back end that asks to be
/// left alone is, for as long as it says; how many calls go on then is told by what it has answered since it asked
/// before. A value without a clock: the time comes in.
///
/// One key that fails again and again does not open it: that may be the key's own fault, and it waits by itself.
package struct CircuitBreaker: Sendable, Equatable {
    package enum State: Sendable, Equatable {
        /// The keys whose calls found it away since it last answered.
        case closed(failed: Set<EventSubject>)
        /// Nobody calls until then.
        case open(until: ContinuousClock.Instant, wait: Duration)
        /// It asked for it: nobody calls until then, whatever earlier calls are answered. Then it is closed.
        case leftAlone(until: ContinuousClock.Instant)
        /// One call is under way to find out.
        case halfOpen(wait: Duration)
    }

    package private(set) var state = State.closed(failed: [])
    /// How many calls may be under way while it comes back; `nil`: as many as there are places.
    package private(set) var callsMax: Int?
    private var answeredAt: [CallKind: ContinuousClock.Instant] = [:]
    /// Calls it has answered since it was away, or since a time was over for which it had asked to be left alone; and
    /// those that it told so.
    private var answeredCount = 0
    private var refusedCount = 0
    package let failuresMax: Int
    package let waitMin: Duration
    package let waitMax: Duration

    /// So many calls are under way at first when it is there again.
    static let callsMin = 2
    /// From so many on the calls under way are not bounded here.
    static let callsBoundMax = 256

    package init(failuresMax: Int = 10, waitMin: Duration = .seconds(2), waitMax: Duration = .seconds(60)) {
        self.failuresMax = failuresMax
        self.waitMin = waitMin
        self.waitMax = waitMax
    }

    /// What a key that needs a call does now.
    package enum Admission: Equatable { case call, probe, wait(Duration) }

    package mutating func admit(now: ContinuousClock.Instant) -> Admission {
        goOn(now: now)
        switch state {
        case .closed: return .call
        case .open(let until, let wait):
            guard now >= until else { return .wait(until - now) }
            state = .halfOpen(wait: wait)
            return .probe
        case .leftAlone(let until): return .wait(until - now)
        case .halfOpen(let wait): return .wait(wait)
        }
    }

    /// Calls go on when the time is over that it asked for.
    ///
    /// - Returns: Whether that has just happened.
    @discardableResult
    package mutating func goOn(now: ContinuousClock.Instant) -> Bool {
        guard let until = leftAloneUntil, now >= until else { return false }
        state = .closed(failed: [])
        (answeredCount, refusedCount) = (0, 0)
        return true
    }

    /// As many as it has answered, at least one; twice as many when those were most.
    private var callsMaxAfterwards: Int? {
        Self.bound(answeredCount >= refusedCount ? 2 * answeredCount : answeredCount)
    }

    private static func bound(_ count: Int) -> Int? { count < callsBoundMax ? max(1, count) : nil }

    /// Until when it asked to be left alone.
    package var leftAloneUntil: ContinuousClock.Instant? {
        if case .leftAlone(let until) = state { until } else { nil }
    }

    /// The back end answered a call, whatever it said.
    ///
    /// - Returns: Whether it had been away: all that waits for it may go on.
    package mutating func answered(_ kind: CallKind, now: ContinuousClock.Instant) -> Bool {
        answeredAt[kind] = now
        answeredCount = min(answeredCount + 1, Self.callsBoundMax)
        switch state {
        case .closed:
            state = .closed(failed: [])
            callsMax = callsMax.flatMap { Self.bound($0 + 1) }
            return false
        case .open, .halfOpen:
            state = .closed(failed: [])
            callsMax = Self.callsMin
            answeredCount = 1
            return true
        // What it answers now was asked before it wanted to be left alone.
        case .leftAlone:
            callsMax = callsMaxAfterwards
            return false
        }
    }

    /// The back end could not be reached, or said that it cannot work now.
    ///
    /// - Returns: Whether the circuit opened by it.
    package mutating func wasAway(for key: EventSubject, now: ContinuousClock.Instant) -> Bool {
        switch state {
        case .closed(var failed):
            failed.insert(key)
            callsMax = callsMax.map { max(1, $0 / 2) }
            guard failed.count >= failuresMax else {
                state = .closed(failed: failed)
                return false
            }
            state = .open(until: now + waitMin, wait: waitMin)
            (answeredCount, refusedCount) = (0, 0)
            return true
        case .halfOpen(let wait):
            let longer = min(wait * 2, waitMax)
            state = .open(until: now + longer, wait: longer)
            return false
        case .open, .leftAlone: return false
        }
    }

    /// The back end asked not to be called for that long.
    ///
    /// - Returns: Whether that is news.
    package mutating func askedToWait(_ wait: Duration, now: ContinuousClock.Instant) -> Bool {
        var until = now + wait
        let isNews = isClosed
        if let earlier = leftAloneUntil { until = max(until, earlier) }
        refusedCount += 1
        callsMax = callsMaxAfterwards
        state = .leftAlone(until: until)
        return isNews
    }

    /// The key that was to probe needed no call after all: another one may.
    package mutating func probeWasNotMade(now: ContinuousClock.Instant) {
        if case .halfOpen(let wait) = state { state = .open(until: now, wait: wait) }
    }

    /// Whether the next key that needs a call would be let through.
    package func mayProbe(now: ContinuousClock.Instant) -> Bool {
        switch state {
        case .open(let until, _): now >= until
        case .closed, .leftAlone, .halfOpen: false
        }
    }

    /// A probe is under way.
    package var isHalfOpen: Bool { if case .halfOpen = state { true } else { false } }

    package var isClosed: Bool { if case .closed = state { true } else { false } }

    /// Whether it has answered somebody's call of the kind lately: a key that fails now may be at fault itself.
    package func isThere(for kind: CallKind, now: ContinuousClock.Instant) -> Bool {
        guard isClosed, let answeredAt = answeredAt[kind] else { return false }
        return now < answeredAt + waitMax
    }
}
