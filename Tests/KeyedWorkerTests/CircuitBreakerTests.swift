import FoundationEssentials
import Model
import TestSupport
import Testing

@testable import KeyedWorker

@Suite(.ownThreads) struct CircuitBreakerTests {
    private let start = ContinuousClock.now

    private func opened() -> CircuitBreaker {
        var breaker = CircuitBreaker(failuresMax: 2, waitMin: .seconds(2), waitMax: .seconds(5))
        #expect(breaker.recordFailure(of: key(1), now: start) == false)
        #expect(breaker.recordFailure(of: key(2), now: start) == true)
        return breaker
    }

    private func key(_ number: Int) -> EventSubject {
        EventSubject(
            realm: .users, kind: .timeEntry,
            id: UUID(uuid: (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, UInt8(number))))
    }

    @Test func circuitOpensOnlyAfterConsecutiveFailures() {
        var breaker = CircuitBreaker(failuresMax: 2)
        #expect(breaker.recordFailure(of: key(1), now: start) == false)
        #expect(breaker.recordSuccess(.read, now: start) == false)
        #expect(breaker.recordFailure(of: key(2), now: start) == false)
        #expect(breaker.admit(now: start) == .call && breaker.isClosed)
        #expect(breaker.recordFailure(of: key(1), now: start) == true)
        #expect(!breaker.isClosed)
    }

    /// The fault may be the key's own.
    @Test func circuitStaysClosedWhenOneKeyFailsRepeatedly() {
        var breaker = CircuitBreaker(failuresMax: 2)
        for _ in 0..<50 { #expect(breaker.recordFailure(of: key(1), now: start) == false) }
        #expect(breaker.admit(now: start) == .call)
    }

    /// Recent successes of other keys show that a failure may be the key's own fault.
    @Test func recentSuccessExpiresAndDependsOnKind() {
        var breaker = CircuitBreaker(failuresMax: 2, waitMax: .seconds(60))
        #expect(!breaker.hasRecentSuccess(for: .read, now: start))
        _ = breaker.recordSuccess(.read, now: start)
        #expect(!breaker.hasRecentSuccess(for: .write, now: start))
        #expect(
            breaker.hasRecentSuccess(for: .read, now: start + .seconds(59))
                && !breaker.hasRecentSuccess(for: .read, now: start + .seconds(60)))
        _ = breaker.recordFailure(of: key(1), now: start)
        _ = breaker.recordFailure(of: key(2), now: start)
        #expect(!breaker.hasRecentSuccess(for: .read, now: start))
    }

    /// For the requested time, regardless of results of calls in flight. Then calls resume without a probe.
    @Test func retryAfterStopsCallsForTheRequestedTime() {
        var breaker = CircuitBreaker(failuresMax: 2, waitMin: .seconds(2))
        #expect(breaker.backOff(for: .seconds(30), now: start) == true)
        #expect(breaker.backOff(for: .seconds(5), now: start + .seconds(1)) == false)
        #expect(breaker.recordSuccess(.read, now: start + .seconds(1)) == false)
        #expect(breaker.recordFailure(of: key(1), now: start + .seconds(1)) == false)
        #expect(breaker.admit(now: start + .seconds(1)) == .wait(.seconds(29)))
        #expect(!breaker.mayProbe(now: start + .seconds(30)))
        #expect(breaker.admit(now: start + .seconds(30)) == .call)
        #expect(breaker.backOff(for: .seconds(10), now: start + .seconds(30)) == true)
        #expect(breaker.admit(now: start + .seconds(30)) == .wait(.seconds(10)))
        #expect(!breaker.endBackoff(now: start + .seconds(39)) && breaker.endBackoff(now: start + .seconds(40)))
        #expect(breaker.isClosed && breaker.admit(now: start + .seconds(40)) == .call)
    }

    /// After a pause, a busy back end that answered most calls gets as many as before, one that answered none gets one.
    @Test func callLimitAfterRetryAfterFollowsSuccesses() {
        var breaker = CircuitBreaker()
        var now = start
        // Some calls in flight succeed before the request, some after it; further requests change nothing.
        for (answeredCount, callsMax) in [(40, 80), (4, 8), (2, 2), (0, 1)] {
            for _ in 0..<answeredCount / 2 { _ = breaker.recordSuccess(.write, now: now) }
            for _ in 0..<3 { _ = breaker.backOff(for: .seconds(1), now: now) }
            for _ in 0..<answeredCount / 2 { _ = breaker.recordSuccess(.write, now: now) }
            now += .seconds(1)
            #expect(breaker.admit(now: now) == .call)
            #expect(breaker.callsMax == callsMax)
        }
        for _ in 0..<8 { _ = breaker.recordSuccess(.write, now: now) }
        #expect(breaker.callsMax == 9)
        for _ in 0..<300 { _ = breaker.recordSuccess(.write, now: now) }
        #expect(breaker.callsMax == nil)
        _ = breaker.backOff(for: .seconds(1), now: now)
        #expect(breaker.callsMax == nil)
    }

    /// Successes before the outage do not count.
    @Test(arguments: [false, true]) func circuitBreakerRampsUpAfterRetryAfter(isProbeAnswered: Bool) {
        var breaker = CircuitBreaker(failuresMax: 1, waitMin: .seconds(2))
        for _ in 0..<300 { _ = breaker.recordSuccess(.write, now: start) }
        #expect(breaker.recordFailure(of: key(1), now: start) == true)
        #expect(breaker.admit(now: start + .seconds(2)) == .probe)
        if isProbeAnswered { _ = breaker.recordSuccess(.write, now: start + .seconds(2)) }
        _ = breaker.backOff(for: .seconds(1), now: start + .seconds(2))
        #expect(breaker.admit(now: start + .seconds(3)) == .call)
        #expect(breaker.callsMax == (isProbeAnswered ? 2 : 1))
    }

    /// The limit follows the number of recent successes until it is lifted.
    @Test func circuitBreakerRampsUpAfterProbe() {
        var breaker = opened()
        #expect(breaker.callsMax == nil)
        #expect(breaker.admit(now: start + .seconds(2)) == .probe)
        #expect(breaker.recordSuccess(.read, now: start + .seconds(2)) == true)
        #expect(breaker.callsMax == 2)
        for _ in 0..<6 { _ = breaker.recordSuccess(.read, now: start + .seconds(2)) }
        #expect(breaker.callsMax == 8)
        _ = breaker.recordFailure(of: key(1), now: start + .seconds(2))
        #expect(breaker.callsMax == 4)
        for _ in 0..<300 { _ = breaker.recordSuccess(.read, now: start + .seconds(2)) }
        #expect(breaker.callsMax == nil)
    }

    @Test func successfulProbeClosesCircuit() {
        var breaker = opened()
        #expect(breaker.admit(now: start) == .wait(.seconds(2)))
        #expect(!breaker.mayProbe(now: start + .seconds(1)))
        let later = start + .seconds(2)
        #expect(breaker.mayProbe(now: later))
        #expect(breaker.admit(now: later) == .probe)
        // No further call until the probe's result.
        #expect(breaker.admit(now: later) == .wait(.seconds(2)))
        #expect(!breaker.mayProbe(now: later))
        #expect(breaker.recordSuccess(.read, now: later) == true)
        #expect(breaker.isClosed && breaker.admit(now: later) == .call)
        #expect(breaker.recordSuccess(.read, now: later) == false)
    }

    @Test func waitDoublesUpToItsMaximum() {
        var breaker = opened()
        var now = start + .seconds(2)
        for wait in [4, 5, 5] {
            #expect(breaker.admit(now: now) == .probe)
            #expect(breaker.recordFailure(of: key(1), now: now) == false)
            #expect(breaker.admit(now: now) == .wait(.seconds(wait)))
            now += .seconds(wait)
        }
    }

    @Test func skippedProbeIsLeftToTheNextKey() {
        var breaker = opened()
        let later = start + .seconds(2)
        #expect(breaker.admit(now: later) == .probe)
        breaker.releaseProbe(now: later)
        #expect(breaker.admit(now: later) == .probe)
        #expect(breaker.recordFailure(of: key(1), now: later) == false)
        #expect(breaker.admit(now: later) == .wait(.seconds(4)))
    }
}
