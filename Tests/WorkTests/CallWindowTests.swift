import Kafka
import Model
import Synchronization
import Testing

@testable import Work

@Suite struct CallWindowTests {
    /// How many calls are being made, and the most that ever were.
    private final class Gauge: Sendable {
        private let counts = Mutex((now: 0, most: 0))

        func enter() { counts.withLock { $0 = ($0.now + 1, max($0.most, $0.now + 1)) } }
        func leave() { counts.withLock { $0.now -= 1 } }
        var most: Int { counts.withLock { $0.most } }
    }

    @Test func allCallsAreMadeButNeverMoreAtATimeThanThereIsRoomFor() async throws {
        let window = CallWindow<Int, Int>(placesMax: 4, wakeup: try Wakeup())
        let gauge = Gauge()
        for key in 0..<100 {
            window.add(
                CallWindow.Call(key: key, turn: turn, startBefore: .now + .seconds(600)) {
                    gauge.enter()
                    await Task.yield()
                    gauge.leave()
                    return key * 2
                })
        }
        let outcomes = try await outcomes(100, of: window)
        #expect(outcomes.sorted { $0.0 < $1.0 }.map(\.1) == (0..<100).map { $0 * 2 })
        #expect(Set(outcomes.map(\.0)).count == 100)
        #expect((1...4).contains(gauge.most))
        while window.underWayCount > 0 { await Task.yield() }
    }

    @Test func aCallThatWaitedTooLongIsNotMadeAndItsPlaceGoesToTheNext() async throws {
        let window = CallWindow<Int, Int>(placesMax: 1, wakeup: try Wakeup())
        let made = Mutex<[Int]>([])
        for (key, start) in [(1, Duration.seconds(600)), (2, .seconds(-1)), (3, .seconds(600))] {
            window.add(
                CallWindow.Call(key: key, turn: turn, startBefore: .now + start) {
                    made.withLock { $0.append(key) }
                    return key
                })
        }
        let outcomes = try await outcomes(3, of: window)
        #expect(outcomes.map(\.0) == [1, 2, 3])
        #expect(outcomes.map(\.1) == [1, nil, 3])
        #expect(made.withLock { $0 } == [1, 3])
    }

    /// Calls that are not made any more are told, and those under way go on.
    @Test func whatWaitsCanBeTakenBack() async throws {
        let window = CallWindow<Int, Int>(placesMax: 1, wakeup: try Wakeup())
        let isHeld = Mutex(true)
        for key in 0..<3 {
            window.add(
                CallWindow.Call(key: key, turn: turn, startBefore: .now + .seconds(600)) {
                    while isHeld.withLock({ $0 }) { await Task.yield() }
                    return key
                })
        }
        window.withdraw(turn.environment)
        let unmade = try await outcomes(2, of: window)
        #expect(unmade.map(\.0) == [1, 2] && unmade.allSatisfy { $0.1 == nil })
        isHeld.withLock { $0 = false }
        #expect(try await outcomes(1, of: window).map(\.1) == [0])
    }

    /// Where answers are large, no more of them are held than there are places.
    @Test func answersMayKeepTheirPlacesUntilTheyAreTaken() async throws {
        let window = CallWindow<Int, Int>(placesMax: 2, answersKeepPlaces: true, wakeup: try Wakeup())
        let made = Mutex(0)
        for key in 0..<6 {
            window.add(
                CallWindow.Call(key: key, turn: turn, startBefore: .now + .seconds(600)) {
                    made.withLock { $0 += 1 }
                    return key
                })
        }
        for count in [2, 4, 6] {
            while made.withLock({ $0 }) < count { await Task.yield() }
            // More of them would be made by now.
            for _ in 0..<1_000 { await Task.yield() }
            #expect(made.withLock { $0 } == count)
            _ = window.takeOutcomes()
            window.startWaiting()
        }
    }

    private let turn = FlowKey(environment: EnvironmentID(rawValue: 1), person: "ana")

    private func outcomes(_ count: Int, of window: CallWindow<Int, Int>) async throws -> [(Int, Int?)] {
        var outcomes: [(Int, Int?)] = []
        while outcomes.count < count {
            outcomes += window.takeOutcomes().map { ($0.key, $0.answer) }
            await Task.yield()
        }
        return outcomes
    }
}
