import Essentials
import Glibc
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
    private let stopSignal: EventDescriptor

    init(name: String, index: Int, logger: Logger, health: Health) {
        self.name = name
        self.index = index
        self.logger = logger
        self.health = health
        self.progress = health.watch(name)
        self.stopSignal = EventDescriptor()
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
    /// loop that waits for its own event, such as an eventfd.
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
            stopSignal.wait(milliseconds: Int32(min(1000, (left + 999_999) / 1_000_000)))
        }
    }

    func stop() {
        stopping.store(true, ordering: .releasing)
        stopSignal.signal()
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

/// A pipe that stays readable after it was signalled: one thread waits, any thread can wake it.
///
/// Swift's Glibc module has no `eventfd(2)`.
@safe struct EventDescriptor: ~Copyable, Sendable {
    private let readEnd: Int32
    private let writeEnd: Int32

    init() {
        var ends: [Int32] = [-1, -1]
        unsafe pipe(&ends)
        for end in ends {
            _ = fcntl(end, F_SETFD, FD_CLOEXEC)
            _ = fcntl(end, F_SETFL, O_NONBLOCK)
        }
        readEnd = ends[0]
        writeEnd = ends[1]
    }

    deinit {
        close(readEnd)
        close(writeEnd)
    }

    /// Wakes the current and all later waits.
    borrowing func signal() { write([1], to: writeEnd) }

    /// If the process has no free descriptors, this only waits for the time.
    borrowing func wait(milliseconds: Int32) {
        var entry = pollfd(fd: readEnd, events: Int16(POLLIN), revents: 0)
        unsafe poll(&entry, 1, milliseconds)
    }
}
