import Kafka
import Model
import Synchronization

/// The calls of a worker: a bounded number under way for each environment, the others waiting for their turn.
///
/// A call that ends takes the next one along, so the window stays full however long the worker's loop is busy with
/// PostgreSQL. What came of the calls waits for the loop.
final class CallWindow<Key: Sendable, Answer: Sendable>: Sendable {
    struct Call: Sendable {
        let key: Key
        let turn: FlowKey
        /// It is not made any more from then on.
        let startBefore: ContinuousClock.Instant
        let make: @Sendable () async -> Answer
    }

    private typealias Begun = (call: Call, at: ContinuousClock.Instant)

    private struct State {
        var queue: CallQueue<Call>
        /// An answer, or `nil` for a call that was not made.
        var outcomes: [(key: Key, answer: Answer?)] = []
        /// Calls of these answers that keep their places.
        var keptPlaces: [(environment: EnvironmentID, begunAt: ContinuousClock.Instant)] = []
    }

    private let answersKeepPlaces: Bool
    private let wakeup: Wakeup
    private let state: Mutex<State>

    /// - Parameters:
    ///   - placesMax: Calls under way at a time, for one environment.
    ///   - answersKeepPlaces: A call's place is free when its answer is taken, so that no more of them are held than
    ///     there are places; else as soon as it is over.
    ///   - wakeup: Signalled when something came of a call.
    init(placesMax: Int, answersKeepPlaces: Bool = false, wakeup: Wakeup) {
        self.answersKeepPlaces = answersKeepPlaces
        self.wakeup = wakeup
        state = Mutex(State(queue: CallQueue(placesMax: placesMax)))
    }

    var underWayCount: Int { state.withLock { $0.queue.underWayCount } }

    /// Reads the queue.
    func read<Value: Sendable>(_ body: (CallQueue<Call>) -> Value) -> Value { state.withLock { body($0.queue) } }

    func add(_ call: Call) {
        state.withLock { $0.queue.add(call, for: call.turn, startBefore: call.startBefore, now: .now) }
        startWaiting()
    }

    /// Starts what waited for its time, for a place, or for answers to be taken.
    func startWaiting() {
        while let first = next() { Task { await self.makeCalls(from: first) } }
    }

    /// Takes back all calls of an environment that are not made yet: their outcome is that they were not made.
    func withdraw(_ environment: EnvironmentID) {
        let isAny = state.withLock { state in
            let calls = state.queue.withdraw(environment)
            state.outcomes += calls.map { ($0.key, nil) }
            return !calls.isEmpty
        }
        if isAny { wakeup.signal() }
    }

    /// Bounds an environment's calls under way more than its places do.
    func bound(_ environment: EnvironmentID, to count: Int?) {
        state.withLock { $0.queue.bound(environment, to: count) }
    }

    func setRates(_ rates: CallRates, of environment: EnvironmentID) {
        state.withLock { $0.queue.setRates(rates, of: environment, now: .now) }
    }

    func takeOutcomes() -> [(key: Key, answer: Answer?)] {
        state.withLock { state in
            for place in state.keptPlaces {
                state.queue.ended(in: place.environment, begunAt: place.begunAt, now: .now)
            }
            state.keptPlaces = []
            defer { state.outcomes = [] }
            return state.outcomes
        }
    }

    /// One place in the window: makes calls as long as some wait.
    private func makeCalls(from first: Begun) async {
        var current: Begun? = first
        while let (call, begunAt) = current {
            // A last time: it may have waited for a thread.
            let answer = ContinuousClock.now < call.startBefore ? await call.make() : nil
            state.withLock { state in
                state.outcomes.append((call.key, answer))
                if answersKeepPlaces {
                    state.keptPlaces.append((call.turn.environment, begunAt))
                } else {
                    state.queue.ended(in: call.turn.environment, begunAt: begunAt, now: .now)
                }
            }
            wakeup.signal()
            current = next()
        }
    }

    private func next() -> Begun? {
        let (begun, isAnyOverdue) = state.withLock { state in
            let now = ContinuousClock.now
            let call = state.queue.next(now: now)?.call
            let expired = state.queue.takeExpired()
            state.outcomes += expired.map { ($0.key, nil) }
            return (call.map { ($0, now) }, !expired.isEmpty)
        }
        if isAnyOverdue { wakeup.signal() }
        return begun
    }
}
