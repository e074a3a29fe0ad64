import Essentials
import Glibc
package import Logging
import Synchronization
import Telemetry

/// What a worker's body knows of the process it runs in.
package final class WorkerControl: Sendable {
    /// The worker's name and number, for example `entry-submitter/0`.
    package let name: String
    /// From 0 below the worker's count.
    package let index: Int
    package let logger: Logger

    private let health: Health
    private let progress: Progress
    private let stopping = Atomic<Bool>(false)
    /// Why it is not ready, so that a round costs one atomic read when all is well.
    private let isImpaired = Atomic<Bool>(true)
    /// Whether the body has progressed since it was last started.
    private let hasWorked = Atomic<Bool>(false)
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

    /// Whether the process is shutting down: finish what was begun, and return.
    package var isStopping: Bool { stopping.load(ordering: .acquiring) }

    /// The loop went round with its dependencies there: it is live, and what a failure said is over.
    package func progressed() {
        progress.progressed()
        guard isImpaired.load(ordering: .relaxed) else { return }
        isImpaired.store(false, ordering: .relaxed)
        hasWorked.store(true, ordering: .relaxed)
        health.ready(true, source: name)
    }

    /// The loop went round, but something it needs is away: it is live and not ready, until `progressed()`.
    package func impaired(_ reason: String) {
        progress.progressed()
        isImpaired.store(true, ordering: .relaxed)
        health.ready(false, source: name, reason: reason)
    }

    /// Calls `hook` when the process shuts down, on another thread; at once when it already does.
    /// For waking a loop that waits on something of its own, such as an eventfd.
    package func whenStopping(_ hook: @escaping @Sendable () -> Void) {
        stopHooks.withLock { $0.append(hook) }
        if isStopping { hook() }
    }

    /// Waits, but not past the start of a shutdown. The loop counts as live meanwhile.
    package func pause(_ duration: Duration) {
        let deadline = SteadyClock.nanoseconds() + duration.nanoseconds
        while !isStopping {
            progress.progressed()
            let left = deadline - SteadyClock.nanoseconds()
            guard left > 0 else { return }
            // In pieces, so that a long pause is no stall.
            stopSignal.wait(milliseconds: Int32(min(1000, (left + 999_999) / 1_000_000)))
        }
    }

    func stop() {
        stopping.store(true, ordering: .releasing)
        stopSignal.signal()
        for hook in stopHooks.withLock({ $0 }) { hook() }
    }

    /// - Returns: Whether the body progressed since the last call.
    func takeHasWorked() -> Bool { hasWorked.exchange(false, ordering: .relaxed) }

    /// The thread has ended.
    func ended() {
        health.forget(progress)
        stopHooks.withLock { $0 = [] }
    }
}

/// A pipe that stays readable once it was signalled: one thread waits, any thread wakes it.
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

    /// Later waits return at once.
    borrowing func signal() { write([1], to: writeEnd) }

    /// Without descriptors left in the process this is a plain wait.
    borrowing func wait(milliseconds: Int32) {
        var entry = pollfd(fd: readEnd, events: Int16(POLLIN), revents: 0)
        unsafe poll(&entry, 1, milliseconds)
    }
}
