import Essentials
import Synchronization

/// The health of the process's components, for `/health/live` and `/health/ready`.
///
/// Live: every worker loop makes progress, independent of its dependencies. Ready: all required dependencies are
/// available.
package final class Health: Sendable {
    private struct State {
        var loops: [Progress] = []
        /// The reasons why the process is not ready, by source.
        var reasons: [String: String] = [:]
        var isShuttingDown = false
    }

    private let state = Mutex(State())
    /// The time without progress after which a loop is stalled.
    package let stallMax: Duration

    package init(stallMax: Duration) { self.stallMax = stallMax }

    /// Starts to monitor a loop.
    package func watch(_ name: String) -> Progress {
        let progress = Progress(name: name)
        state.withLock { $0.loops.append(progress) }
        return progress
    }

    /// Stops monitoring a loop that has ended.
    package func unwatch(_ progress: Progress) {
        state.withLock { $0.loops.removeAll { $0 === progress } }
    }

    /// - Parameters:
    ///   - source: The component or dependency that reports its state.
    ///   - reason: A message for people; required if `isReady` is false.
    package func ready(_ isReady: Bool, source: String, reason: String? = nil) {
        state.withLock { $0.reasons[source] = isReady ? nil : reason ?? "not ready" }
    }

    package func shuttingDown() { state.withLock { $0.isShuttingDown = true } }

    /// Returns the stalled loops with the time since their last progress. Empty: live.
    package func stalls(now: Int64 = SteadyClock.nanoseconds()) -> [String: Duration] {
        var stalls: [String: Duration] = [:]
        for loop in state.withLock({ $0.loops }) {
            let age = loop.age(now: now)
            if age > stallMax { stalls[loop.name] = age }
        }
        return stalls
    }

    /// The reasons why the process should not receive work, by source. Empty: ready.
    package var reasons: [String: String] {
        state.withLock { state in
            state.isShuttingDown
                ? state.reasons.merging(["process": "shutting down"]) { _, new in new } : state.reasons
        }
    }
}

/// The time of a loop's last iteration. Updating it is cheap enough for every iteration.
package final class Progress: Sendable {
    package let name: String
    private let last: Atomic<Int64>

    init(name: String) {
        self.name = name
        self.last = Atomic(SteadyClock.nanoseconds())
    }

    package func progressed() { last.store(SteadyClock.nanoseconds(), ordering: .relaxed) }

    func age(now: Int64) -> Duration { .nanoseconds(max(0, now - last.load(ordering: .relaxed))) }
}
