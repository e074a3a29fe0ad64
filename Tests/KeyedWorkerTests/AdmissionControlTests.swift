import Model
import Testing

@testable import KeyedWorker

/// What an environment's calls have room for.
@Suite struct AdmissionControlTests {
    private let acme = EnvironmentID(rawValue: 1)
    private let now = ContinuousClock.now

    /// A phone comes back with all that was written on a long journey: what its rate does not begin in time waits
    /// elsewhere, and others' calls have room.
    @Test func aPersonsCallsBeyondTheRateHaveNoRoom() {
        var calls = CallQueue<Int>(placesMax: 4)
        calls.setRates(CallRates(perPersonAndSecond: 1), of: acme, now: now)
        var room = room(calls)
        #expect(takeAll(500, of: "ana", &room, within: .seconds(600)) == 10)
        #expect(takeAll(500, of: "ben", &room, within: .seconds(600)) == 10)
    }

    /// Calls that are made soon or not at all have room for as many as begin soon.
    @Test(arguments: [(Duration.seconds(600), 50), (.seconds(4), 10), (.milliseconds(100), 1), (.seconds(-1), 1)])
    func aRateBeginsAsManyAsThereIsTimeFor(within: Duration, countMax: Int) {
        var calls = CallQueue<Int>(placesMax: 4)
        calls.setRates(CallRates(perSecond: 5), of: acme, now: now)
        var room = room(calls)
        #expect(room.left == 50)
        #expect(takeAll(500, of: "ana", &room, within: within) == countMax)
        #expect(room.left == 50 - countMax)
        // Of somebody who has none there may be twice as many.
        var newCount = 0
        for number in 0..<500 where room.take(turn("p\(number)"), startBefore: now + within) { newCount += 1 }
        #expect(newCount == countMax)
    }

    @Test func withoutARateThereIsRoomForAPartOfAll() {
        var limits = WorkerLimits()
        (limits.heldMax, limits.inFlightMax) = (64, 4)
        let calls = CallQueue<Int>(placesMax: 4)
        var room = AdmissionControl(calls, acme, limits, now: now)
        #expect(room.left == 16 && takeAll(99, of: "ana", &room, within: .seconds(600)) == 16)
        #expect(room.left == 0 && takeAll(9, of: "ben", &room, within: .seconds(600)) == 1)
    }

    private func room(_ calls: CallQueue<Int>) -> AdmissionControl {
        AdmissionControl(calls, acme, WorkerLimits(), now: now)
    }

    private func turn(_ person: String) -> FlowKey { FlowKey(environment: acme, person: person) }

    private func takeAll(_ count: Int, of person: String, _ room: inout AdmissionControl, within time: Duration) -> Int
    {
        var taken = 0
        for _ in 0..<count where room.take(turn(person), startBefore: now + time) { taken += 1 }
        return taken
    }
}
