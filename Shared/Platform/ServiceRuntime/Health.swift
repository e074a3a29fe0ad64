import Essentials
import Synchronization

/// What the process's parts say of themselves, for `/health/live` and `/health/ready`.
///
/// Live: every worker loop goes round, whatever its dependencies do. Ready: nothing that is needed is away.
package final class Health: Sendable {
    private struct State {
        var loops: [Progress] = []
        /// Why the process is not ready, by who says so.
        var reasons: [String: String] = [:]
        var isShuttingDown = false
    }

    private let state = Mutex(State())
    /// A loop without progress for longer is stalled.
    package let stallMax: Duration

    package init(stallMax: Duration) { self.stallMax = stallMax }

    /// Watches one more loop from now on.
    package func watch(_ name: String) -> Progress {
        let progress = Progress(name: name)
        state.withLock { $0.loops.append(progress) }
        return progress
    }

    /// Stops watching a loop that has ended.
    package func forget(_ progress: Progress) {
        state.withLock { $0.loops.removeAll { $0 === progress } }
    }

    /// - Parameters:
    ///   - source: Who says so: a component or a dependency.
    ///   - reason: For people; not `nil` when `isReady` is false.
    package func ready(_ isReady: Bool, source: String, reason: String? = nil) {
        state.withLock { $0.reasons[source] = isReady ? nil : reason ?? "not ready" }
    }

    package func shuttingDown() { state.withLock { $0.isShuttingDown = true } }

    /// The loops that are stalled, each with the time since its last progress. Empty: live.
    package func stalls(now: Int64 = SteadyClock.nanoseconds()) -> [String: Duration] {
        var stalls: [String: Duration] = [:]
        for loop in state.withLock({ $0.loops }) {
            let age = loop.age(now: now)
            if age > stallMax { stalls[loop.name] = age }
        }
        return stalls
    }

    /// Why the process should get no work, by who says so. Empty: ready.
    package var reasons: [String: String] {
        state.withLock { state in
            state.isShuttingDown
                ? state.reasons.merging(["process": "shutting down"]) { _, new in new } : state.reasons
        }
    }
}

/// When a loop last went round. Cheap enough for every round.
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
