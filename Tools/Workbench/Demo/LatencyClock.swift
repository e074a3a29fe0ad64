import FoundationEssentials
import LocalCluster
import Synchronization

/// Measures the time from sending objects until their arrival.
final class LatencyClock: Sendable {
    private struct State {
        var started: [UUID: ContinuousClock.Instant] = [:]
        var measured: [Duration] = []
    }

    private let state = Mutex(State())

    var measured: [Duration] { state.withLock { $0.measured } }

    /// The first attempt counts; retries do not.
    func start(_ id: UUID, at time: ContinuousClock.Instant) {
        state.withLock { $0.started[id] = $0.started[id] ?? time }
    }

    /// The first arrival counts; objects that were not started are ignored.
    func stop(_ id: UUID, at time: ContinuousClock.Instant) {
        state.withLock { state in
            if let start = state.started.removeValue(forKey: id) { state.measured.append(time - start) }
        }
    }

    func isRunning(for id: UUID) -> Bool { state.withLock { $0.started[id] != nil } }

    /// Discards the objects that have not arrived: time offline does not count.
    func wentOffline() { state.withLock { $0.started = [:] } }

    /// Returns the latencies, and resets the clock.
    func take() -> [Duration] {
        state.withLock { state in
            defer { state = State() }
            return state.measured
        }
    }

    func waitUntilComplete(within: Duration) async throws {
        try await waitUntil("all entries have arrived", within: within, interval: .milliseconds(20)) {
            state.withLock { $0.started.isEmpty }
        }
    }
}

extension [Duration] {
    /// The smallest value that at least `percent` per cent of the values do not exceed (nearest rank).
    func percentile(_ percent: Int) -> Duration? {
        isEmpty ? nil : sorted()[Swift.max(0, (count * percent + 99) / 100 - 1)]
    }
}
