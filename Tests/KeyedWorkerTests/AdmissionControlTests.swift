import Model
import TestSupport
import Testing

@testable import KeyedWorker

/// Capacity for an environment's calls.
@Suite(.ownThreads) struct AdmissionControlTests {
    private let acme = EnvironmentID(rawValue: 1)
    private let now = ContinuousClock.now

    /// A phone reconnects with many offline edits: calls that its rate limit cannot start in time are deferred, and
    /// other people's calls have capacity.
    @Test func callsBeyondPersonRateLimitAreDeferred() {
        var calls = CallQueue<Int>(slotsMax: 4)
        calls.setRates(CallRateLimits(perPersonAndSecond: 1), of: acme, now: now)
        var room = room(calls)
        #expect(takeAll(500, of: "ana", &room, within: .seconds(600)) == 10)
        #expect(takeAll(500, of: "ben", &room, within: .seconds(600)) == 10)
    }

    /// Calls with a deadline are admitted up to the number that can start before it.
    @Test(arguments: [(Duration.seconds(600), 50), (.seconds(4), 10), (.milliseconds(100), 1), (.seconds(-1), 1)])
    func rateLimitAdmitsCallsUpToTheirDeadline(within: Duration, countMax: Int) {
        var calls = CallQueue<Int>(slotsMax: 4)
        calls.setRates(CallRateLimits(perSecond: 5), of: acme, now: now)
        var room = room(calls)
        #expect(room.left == 50)
        #expect(takeAll(500, of: "ana", &room, within: within) == countMax)
        #expect(room.left == 50 - countMax)
        // Twice as many if the person has no calls yet.
        var newCount = 0
        for number in 0..<500 where room.admit(flow("p\(number)"), startBefore: now + within) { newCount += 1 }
        #expect(newCount == countMax)
    }

    @Test func withoutRateLimitShareOfCapacityIsAdmitted() {
        var limits = WorkerLimits()
        (limits.keysInFlightMax, limits.inFlightMax) = (64, 4)
        let calls = CallQueue<Int>(slotsMax: 4)
        var room = AdmissionControl(calls, acme, limits, now: now)
        #expect(room.left == 16 && takeAll(99, of: "ana", &room, within: .seconds(600)) == 16)
        #expect(room.left == 0 && takeAll(9, of: "ben", &room, within: .seconds(600)) == 1)
    }

    private func room(_ calls: CallQueue<Int>) -> AdmissionControl {
        AdmissionControl(calls, acme, WorkerLimits(), now: now)
    }

    private func flow(_ person: String) -> FlowKey { FlowKey(environment: acme, person: person) }

    private func takeAll(_ count: Int, of person: String, _ room: inout AdmissionControl, within time: Duration) -> Int
    {
        var admitted = 0
        for _ in 0..<count where room.admit(flow(person), startBefore: now + time) { admitted += 1 }
        return admitted
    }
}
