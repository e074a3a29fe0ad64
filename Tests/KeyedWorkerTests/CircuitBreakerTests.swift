import FoundationEssentials
import Model
import Testing

@testable import KeyedWorker

@Suite struct CircuitBreakerTests {
    private let start = ContinuousClock.now

    private func opened() -> CircuitBreaker {
        var breaker = CircuitBreaker(failuresMax: 2, waitMin: .seconds(2), waitMax: .seconds(5))
        #expect(breaker.wasAway(for: key(1), now: start) == false)
        #expect(breaker.wasAway(for: key(2), now: start) == true)
        return breaker
    }

    private func key(_ number: Int) -> EventSubject {
        EventSubject(
            realm: .users, kind: .timeEntry,
            id: UUID(uuid: (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, UInt8(number))))
    }

    @Test func itOpensAfterFailuresInARowOnly() {
        var breaker = CircuitBreaker(failuresMax: 2)
        #expect(breaker.wasAway(for: key(1), now: start) == false)
        #expect(breaker.answered(.read, now: start) == false)
        #expect(breaker.wasAway(for: key(2), now: start) == false)
        #expect(breaker.admit(now: start) == .call && breaker.isClosed)
        #expect(breaker.wasAway(for: key(1), now: start) == true)
        #expect(!breaker.isClosed)
    }

    /// It may be the key's own fault: others go on.
    @Test func oneKeyThatFailsAgainAndAgainDoesNotOpenIt() {
        var breaker = CircuitBreaker(failuresMax: 2)
        for _ in 0..<50 { #expect(breaker.wasAway(for: key(1), now: start) == false) }
        #expect(breaker.admit(now: start) == .call)
    }

    /// Whether a key's failures may be its own fault shows by what others are answered.
    @Test func itIsThereAsLongAsItAnsweredLately() {
        var breaker = CircuitBreaker(failuresMax: 2, waitMax: .seconds(60))
        #expect(!breaker.isThere(for: .read, now: start))
        _ = breaker.answered(.read, now: start)
        #expect(!breaker.isThere(for: .write, now: start))
        #expect(
            breaker.isThere(for: .read, now: start + .seconds(59))
                && !breaker.isThere(for: .read, now: start + .seconds(60)))
        _ = breaker.wasAway(for: key(1), now: start)
        _ = breaker.wasAway(for: key(2), now: start)
        #expect(!breaker.isThere(for: .read, now: start))
    }

    /// As long as it says, whatever calls under way are answered; then calls go on, since it is there.
    @Test func aBackEndThatAsksForItIsLeftAlone() {
        var breaker = CircuitBreaker(failuresMax: 2, waitMin: .seconds(2))
        #expect(breaker.askedToWait(.seconds(30), now: start) == true)
        #expect(breaker.askedToWait(.seconds(5), now: start + .seconds(1)) == false)
        #expect(breaker.answered(.read, now: start + .seconds(1)) == false)
        #expect(breaker.wasAway(for: key(1), now: start + .seconds(1)) == false)
        #expect(breaker.admit(now: start + .seconds(1)) == .wait(.seconds(29)))
        #expect(!breaker.mayProbe(now: start + .seconds(30)))
        #expect(breaker.admit(now: start + .seconds(30)) == .call)
        #expect(breaker.askedToWait(.seconds(10), now: start + .seconds(30)) == true)
        #expect(breaker.admit(now: start + .seconds(30)) == .wait(.seconds(10)))
        #expect(!breaker.goOn(now: start + .seconds(39)) && breaker.goOn(now: start + .seconds(40)))
        #expect(breaker.isClosed && breaker.admit(now: start + .seconds(40)) == .call)
    }

    /// A busy back end that answers most calls is called as before after each wait; one that answers none, by one call.
    @Test func howManyCallsGoOnIsToldByHowManyWereAnswered() {
        var breaker = CircuitBreaker()
        var now = start
        // Of calls under way some are answered before it asks, some afterwards; what else is told so is no news.
        for (answeredCount, callsMax) in [(40, 80), (4, 8), (2, 2), (0, 1)] {
            for _ in 0..<answeredCount / 2 { _ = breaker.answered(.write, now: now) }
            for _ in 0..<3 { _ = breaker.askedToWait(.seconds(1), now: now) }
            for _ in 0..<answeredCount / 2 { _ = breaker.answered(.write, now: now) }
            now += .seconds(1)
            #expect(breaker.admit(now: now) == .call)
            #expect(breaker.callsMax == callsMax)
        }
        for _ in 0..<8 { _ = breaker.answered(.write, now: now) }
        #expect(breaker.callsMax == 9)
        for _ in 0..<300 { _ = breaker.answered(.write, now: now) }
        #expect(breaker.callsMax == nil)
        _ = breaker.askedToWait(.seconds(1), now: now)
        #expect(breaker.callsMax == nil)
    }

    /// What it answered before it was away does not count.
    @Test(arguments: [false, true]) func oneThatComesBackAndAsksIsCalledByFew(isProbeAnswered: Bool) {
        var breaker = CircuitBreaker(failuresMax: 1, waitMin: .seconds(2))
        for _ in 0..<300 { _ = breaker.answered(.write, now: start) }
        #expect(breaker.wasAway(for: key(1), now: start) == true)
        #expect(breaker.admit(now: start + .seconds(2)) == .probe)
        if isProbeAnswered { _ = breaker.answered(.write, now: start + .seconds(2)) }
        _ = breaker.askedToWait(.seconds(1), now: start + .seconds(2))
        #expect(breaker.admit(now: start + .seconds(3)) == .call)
        #expect(breaker.callsMax == (isProbeAnswered ? 2 : 1))
    }

    /// As many calls are under way as it has answered lately, until they are no longer bounded.
    @Test func whatWaitedComesBackSlowly() {
        var breaker = opened()
        #expect(breaker.callsMax == nil)
        #expect(breaker.admit(now: start + .seconds(2)) == .probe)
        #expect(breaker.answered(.read, now: start + .seconds(2)) == true)
        #expect(breaker.callsMax == 2)
        for _ in 0..<6 { _ = breaker.answered(.read, now: start + .seconds(2)) }
        #expect(breaker.callsMax == 8)
        _ = breaker.wasAway(for: key(1), now: start + .seconds(2))
        #expect(breaker.callsMax == 4)
        for _ in 0..<300 { _ = breaker.answered(.read, now: start + .seconds(2)) }
        #expect(breaker.callsMax == nil)
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
        #expect(breaker.answered(.read, now: later) == true)
        #expect(breaker.isClosed && breaker.admit(now: later) == .call)
        #expect(breaker.answered(.read, now: later) == false)
    }

    @Test func theWaitDoublesUpToItsBound() {
        var breaker = opened()
        var now = start + .seconds(2)
        for wait in [4, 5, 5] {
            #expect(breaker.admit(now: now) == .probe)
            #expect(breaker.wasAway(for: key(1), now: now) == false)
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
        #expect(breaker.wasAway(for: key(1), now: later) == false)
        #expect(breaker.admit(now: later) == .wait(.seconds(4)))
    }
}
