import Kafka
import Synchronization

/// The calls of a worker: a bounded number under way, the others waiting for their turn.
///
/// A call that ends takes the next one along, so the window stays full however long the worker's loop is busy with
/// PostgreSQL. What came of the calls waits for the loop.
final class CallWindow<Key: Sendable, Answer: Sendable>: Sendable {
    struct Call: Sendable {
        let key: Key
        /// It is not made any more from then on.
        let startBefore: ContinuousClock.Instant
        let make: @Sendable () async -> Answer
    }

    private struct State {
        /// Those before `first` are made.
        var waiting: [Call] = []
        var first = 0
        var underWayCount = 0
        /// An answer, or `nil` for a call that waited too long and was not made.
        var outcomes: [(key: Key, answer: Answer?)] = []

        mutating func takeNext() -> Call? {
            guard first < waiting.count else {
                waiting.removeAll(keepingCapacity: true)
                first = 0
                return nil
            }
            first += 1
            return waiting[first - 1]
        }
    }

    private let countMax: Int
    private let wakeup: Wakeup
    private let state = Mutex(State())

    /// - Parameter wakeup: Signalled when something came of a call.
    init(countMax: Int, wakeup: Wakeup) {
        self.countMax = countMax
        self.wakeup = wakeup
    }

    var underWayCount: Int { state.withLock { $0.underWayCount } }

    func add(_ call: Call) {
        let isRoom = state.withLock { state in
            state.waiting.append(call)
            guard state.underWayCount < countMax else { return false }
            state.underWayCount += 1
            return true
        }
        if isRoom { Task { await self.makeCalls() } }
    }

    func takeOutcomes() -> [(key: Key, answer: Answer?)] {
        state.withLock { state in
            defer { state.outcomes = [] }
            return state.outcomes
        }
    }

    /// One place in the window: makes calls as long as some wait.
    private func makeCalls() async {
        while let call = next() {
            let answer = ContinuousClock.now < call.startBefore ? await call.make() : nil
            state.withLock { $0.outcomes.append((call.key, answer)) }
            wakeup.signal()
        }
    }

    private func next() -> Call? {
        state.withLock { state in
            let next = state.takeNext()
            if next == nil { state.underWayCount -= 1 }
            return next
        }
    }
}
