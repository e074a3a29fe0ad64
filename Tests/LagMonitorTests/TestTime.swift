import Synchronization

/// A clock that advances only on request.
final class TestTime: Sendable {
    private let value = Mutex(ContinuousClock.now)
    var now: ContinuousClock.Instant { value.withLock { $0 } }
    func advance(_ duration: Duration) { value.withLock { $0 = $0.advanced(by: duration) } }
}
