import Essentials
package import Logging
import Synchronization
import Telemetry

/// The interface between a worker's body and its process.
package final class WorkerControl: Sendable {
    /// The worker's name and number, for example `entry-submitter/0`.
    package let name: String
    /// The worker's index, from 0.
    package let index: Int
    package let logger: Logger

    private let health: Health
    private let progress: Progress
    private let stopping = Atomic<Bool>(false)
    /// Whether the worker is not ready; lets `progressed()` cost one atomic read otherwise.
    private let isImpaired = Atomic<Bool>(true)
    /// Whether the body has made progress since its last start.
    private let hasProgressed = Atomic<Bool>(false)
    private let stopHooks = Mutex<[@Sendable () -> Void]>([])
    /// `nil` if the process has no free file descriptor: a pause then is not interrupted.
    private let stopSignal = try? Wakeup()

    init(name: String, index: Int, logger: Logger, health: Health) {
        self.name = name
        self.index = index
        self.logger = logger
        self.health = health
        self.progress = health.watch(name)
        health.ready(false, source: name, reason: "starting")
    }

    /// Whether the process is shutting down: complete started work and return.
    package var isStopping: Bool { stopping.load(ordering: .acquiring) }

    /// Reports an iteration with all dependencies available: the loop is live and ready.
    package func progressed() {
        progress.progressed()
        guard isImpaired.load(ordering: .relaxed) else { return }
        isImpaired.store(false, ordering: .relaxed)
        hasProgressed.store(true, ordering: .relaxed)
        health.ready(true, source: name)
    }

    /// Reports an iteration with an unavailable dependency: the loop is live but not ready until `progressed()`.
    package func impaired(_ reason: String) {
        progress.progressed()
        isImpaired.store(true, ordering: .relaxed)
        health.ready(false, source: name, reason: reason)
    }

    /// Calls `hook` at shutdown on another thread, or immediately if the process is shutting down. Use it to wake a
    /// loop that waits for its own event, such as a ``Wakeup``.
    package func whenStopping(_ hook: @escaping @Sendable () -> Void) {
        stopHooks.withLock { $0.append(hook) }
        if isStopping { hook() }
    }

    /// Waits until the time has elapsed or shutdown starts. The loop counts as live meanwhile.
    package func pause(_ duration: Duration) {
        let deadline = SteadyClock.nanoseconds() + duration.nanoseconds
        while !isStopping {
            progress.progressed()
            let left = deadline - SteadyClock.nanoseconds()
            guard left > 0 else { return }
            // In intervals, so that a long pause does not count as a stall.
            let interval = min(.seconds(1), Duration.nanoseconds(left))
            if let stopSignal { stopSignal.wait(atMost: interval) } else { pauseThread(interval) }
        }
    }

    /// Removes the hooks of an earlier run of the body, which keep its descriptors open.
    func removeStopHooks() { stopHooks.withLock { $0 = [] } }

    func stop() {
        stopping.store(true, ordering: .releasing)
        stopSignal?.signal()
        for hook in stopHooks.withLock({ $0 }) { hook() }
    }

    /// - Returns: Whether the body made progress since the last call.
    func takeHasProgressed() -> Bool { hasProgressed.exchange(false, ordering: .relaxed) }

    /// Reports that the thread has ended.
    func ended() {
        health.unwatch(progress)
        stopHooks.withLock { $0 = [] }
    }
}
