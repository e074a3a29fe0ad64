internal import Foundation

/// Runs `body`, which may block, on a thread of its own and as part of the current test.
package func withOwnThread<Success: Sendable>(_ body: @Sendable () throws -> Success) async throws -> Success {
    try await withTaskExecutorPreference(ThreadExecutor()) { try body() }
}

/// Runs each job on a new thread.
private final class ThreadExecutor: TaskExecutor {
    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        Thread.detachNewThread { unsafe job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}
