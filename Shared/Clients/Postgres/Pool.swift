import DequeModule
import Dispatch
package import Essentials
import Synchronization

/// Connections for asynchronous callers: a few threads, each with one connection, process jobs from one queue.
///
/// The body of a job runs synchronously on a connection's thread, with the same API as everywhere.
package final class Pool: Sendable {
    private typealias Job = @Sendable (inout Connection) -> Void

    private struct State: ~Copyable {
        var jobs: Deque<Job> = []
        var isStopping = false
    }

    private let state = Mutex(State())
    private let jobsAvailable = DispatchSemaphore(value: 0)
    private let jobCountMax: Int
    private let size: Int

    /// - Parameters:
    ///   - size: The number of connections, each with a thread.
    ///   - jobCountMax: Maximum number of queued jobs; further ones are rejected to apply backpressure.
    ///   - check: See `Connection.init`.
    /// - Throws: `PostgresError` if a connection cannot be opened, so that a wrong address is detected at start.
    package init(
        _ conninfo: String, size: Int, jobCountMax: Int = 4_096, limits: Limits = Limits(), check: StaticString? = nil
    ) throws(PostgresError) {
        self.jobCountMax = jobCountMax
        self.size = size
        for _ in 0..<size {
            let connection = Mutex(try Connection(conninfo, limits: limits, check: check))
            startThread(named: "postgres") { [self] in
                // Only this thread uses the connection: the mutex passes it on, and stays locked.
                connection.withLock { connection in
                    while let job = takeJob() { job(&connection) }
                }
            }
        }
    }

    /// Runs `body` on the thread of the next free connection.
    ///
    /// - Throws: The error of `body`, or `PostgresError` 53300 if too many jobs are queued.
    package func run<Success: Sendable>(
        _ body: @escaping @Sendable (inout Connection) throws -> Success
    ) async throws -> Success {
        try await withCheckedThrowingContinuation { continuation in
            let isAccepted = state.withLock { state in
                guard !state.isStopping, state.jobs.count < jobCountMax else { return false }
                state.jobs.append { connection in
                    continuation.resume(with: Result { try body(&connection) })
                }
                return true
            }
            if isAccepted {
                jobsAvailable.signal()
            } else {
                let message = "the queue of the connection pool is full: \(jobCountMax) jobs"
                continuation.resume(throwing: PostgresError(sqlState: "53300", message: message))
            }
        }
    }

    /// As ``run(_:)``, for a body that waits for `wakeup`: a cancelled task signals it.
    package func run<Success: Sendable>(
        interruptedBy wakeup: Wakeup, _ body: @escaping @Sendable (inout Connection) throws -> Success
    ) async throws -> Success {
        try await withTaskCancellationHandler {
            try await run(body)
        } onCancel: {
            wakeup.signal()
        }
    }

    /// Ends the threads after the accepted jobs.
    package func stop() {
        state.withLock { $0.isStopping = true }
        for _ in 0..<size { jobsAvailable.signal() }
    }

    private func takeJob() -> Job? {
        while true {
            jobsAvailable.wait()
            let (job, isStopping): (Job?, Bool) = state.withLock { state in
                (state.jobs.popFirst(), state.isStopping)
            }
            if let job { return job }
            if isStopping { return nil }
        }
    }
}
