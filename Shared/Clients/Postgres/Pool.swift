import DequeModule
import Dispatch
import Glibc
import Synchronization

/// Connections for async callers: a few threads, each owning one connection, take jobs from one queue.
///
/// There is one PostgreSQL API for all: the body of a job runs synchronously on a connection's own thread.
package final class Pool: Sendable {
    private typealias Job = @Sendable (inout Connection) -> Void

    private struct State: ~Copyable {
        var jobs: Deque<Job> = []
        var isStopping = false
    }

    private let state = Mutex(State())
    private let news = DispatchSemaphore(value: 0)
    private let jobCountMax: Int
    private let size: Int

    /// - Parameters:
    ///   - size: How many connections, each with a thread.
    ///   - jobCountMax: More waiting jobs than this are refused: the pool pushes back instead of growing.
    ///   - check: As a `Connection` has it.
    /// - Throws: `PostgresError` when a connection cannot be opened: a wrong address shows at start.
    package init(
        _ conninfo: String, size: Int, jobCountMax: Int = 4_096, limits: Limits = Limits(), check: StaticString? = nil
    ) throws(PostgresError) {
        self.jobCountMax = jobCountMax
        self.size = size
        for _ in 0..<size {
            let connection = try Connection(conninfo, limits: limits, check: check)
            startThread(lending: connection) { [self] connection in
                while let job = takeJob() { job(&connection) }
            }
        }
    }

    /// Runs `body` on a connection's thread as soon as one is free.
    ///
    /// - Throws: What `body` throws, or `PostgresError` 53300 when too many jobs are waiting.
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
                news.signal()
            } else {
                let message = "more than \(jobCountMax) jobs are waiting for a connection"
                continuation.resume(throwing: PostgresError(sqlState: "53300", message: message))
            }
        }
    }

    /// Ends the threads once the accepted jobs are done.
    package func stop() {
        state.withLock { $0.isStopping = true }
        for _ in 0..<size { news.signal() }
    }

    private func takeJob() -> Job? {
        while true {
            news.wait()
            let (job, isStopping): (Job?, Bool) = state.withLock { state in
                (state.jobs.popFirst(), state.isStopping)
            }
            if let job { return job }
            if isStopping { return nil }
        }
    }
}

/// Starts a thread that owns `connection` and runs `body` with it.
private func startThread(
    lending connection: consuming sending Connection, _ body: sending @escaping (inout Connection) -> Void
) {
    final class Start {
        var connection: Connection?
        let body: (inout Connection) -> Void
        init(connection: consuming Connection, body: @escaping (inout Connection) -> Void) {
            self.connection = consume connection
            self.body = body
        }
    }
    let start = unsafe Unmanaged.passRetained(Start(connection: connection, body: body))
    var thread = pthread_t()
    let status = unsafe pthread_create(
        &thread, nil,
        { argument in
            guard let argument = unsafe argument else { return nil }
            let start = unsafe Unmanaged<Start>.fromOpaque(argument).takeRetainedValue()
            guard var connection = start.connection.take() else { return nil }
            start.body(&connection)
            return nil
        }, start.toOpaque())
    precondition(status == 0, "no thread left")
    pthread_detach(thread)
}
