import Synchronization

/// A clock that goes on only when it is told to.
final class TestTime: Sendable {
    private let value = Mutex(ContinuousClock.now)
    var now: ContinuousClock.Instant { value.withLock { $0 } }
    func pass(_ duration: Duration) { value.withLock { $0 = $0.advanced(by: duration) } }
}
