import Testing

@testable import Pipeline

@Suite struct CircuitBreakerTests {
    private let start = ContinuousClock.now

    private func opened() -> CircuitBreaker {
        var breaker = CircuitBreaker(failuresMax: 2, waitMin: .seconds(2), waitMax: .seconds(5))
        #expect(breaker.wasAway(now: start) == false)
        #expect(breaker.wasAway(now: start) == true)
        return breaker
    }

    @Test func itOpensAfterFailuresInARowOnly() {
        var breaker = CircuitBreaker(failuresMax: 2)
        #expect(breaker.wasAway(now: start) == false)
        #expect(breaker.answered() == false)
        #expect(breaker.wasAway(now: start) == false)
        #expect(breaker.admit(now: start) == .call && breaker.isClosed)
        #expect(breaker.wasAway(now: start) == true)
        #expect(!breaker.isClosed)
    }

    @Test func oneProbeClosesItAgain() {
        var breaker = opened()
        #expect(breaker.admit(now: start) == .wait(.seconds(2)))
        #expect(!breaker.mayProbe(now: start + .seconds(1)))
        let later = start + .seconds(2)
        #expect(breaker.mayProbe(now: later))
        #expect(breaker.admit(now: later) == .probe)
        // Nobody else, until it is known what came of it.
        #expect(breaker.admit(now: later) == .wait(.seconds(2)))
        #expect(!breaker.mayProbe(now: later))
        #expect(breaker.answered() == true)
        #expect(breaker.isClosed && breaker.admit(now: later) == .call)
        #expect(breaker.answered() == false)
    }

    @Test func theWaitDoublesUpToItsBound() {
        var breaker = opened()
        var now = start + .seconds(2)
        for wait in [4, 5, 5] {
            #expect(breaker.admit(now: now) == .probe)
            #expect(breaker.wasAway(now: now) == false)
            #expect(breaker.admit(now: now) == .wait(.seconds(wait)))
            now += .seconds(wait)
        }
    }

    @Test func aProbeThatWasNotMadeLeavesItsPlaceToTheNext() {
        var breaker = opened()
        let later = start + .seconds(2)
        #expect(breaker.admit(now: later) == .probe)
        breaker.probeWasNotMade(now: later)
        #expect(breaker.admit(now: later) == .probe)
        #expect(breaker.wasAway(now: later) == false)
        #expect(breaker.admit(now: later) == .wait(.seconds(4)))
    }
}
