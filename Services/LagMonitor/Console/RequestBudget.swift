import Synchronization

/// A bound on what strangers ask for, all of them together: requests in a minute.
final class RequestBudget: Sendable {
    private let countMax: Int
    private let state: Mutex<(minute: ContinuousClock.Instant, count: Int)>

    init(countMax: Int) {
        self.countMax = countMax
        state = Mutex((.now, 0))
    }

    /// Counts one more; whether it is within the bound.
    func take(at now: ContinuousClock.Instant = .now) -> Bool {
        state.withLock { state in
            if now - state.minute >= .seconds(60) { state = (now, 0) }
            state.count += 1
            return state.count <= countMax
        }
    }
}
