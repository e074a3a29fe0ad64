internal import Foundation
internal import Synchronization
package import Testing

/// Runs `body`, which may block, on its own thread as part of the current test.
package func withOwnThread<Success: Sendable>(_ body: @Sendable () throws -> Success) async throws -> Success {
    try await withTaskExecutorPreference(ThreadExecutor.shared) { try body() }
}

/// Runs each test of the suite, or the test, on its own threads. The test may block: it occupies none of Swift's few
/// threads, which servers and calls of other tests need.
package struct OwnThreads: SuiteTrait, TestTrait, TestScoping {
    package var isRecursive: Bool { true }

    @concurrent package func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable @concurrent () async throws -> Void
    ) async throws {
        try await withTaskExecutorPreference(ThreadExecutor.shared) { try await function() }
    }
}

extension Trait where Self == OwnThreads {
    package static var ownThreads: Self { OwnThreads() }
}

/// Runs each job immediately, on an idle thread or a new one.
private final class ThreadExecutor: TaskExecutor {
    static let shared = ThreadExecutor()

    /// Jobs assigned to woken threads, and the number of other idle threads.
    private let state = Mutex((jobs: [UnownedJob](), idleCount: 0))
    private let wakeup = DispatchSemaphore(value: 0)

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        let hasIdle = state.withLock { state in
            guard state.idleCount > 0 else { return false }
            state.idleCount -= 1
            state.jobs.append(job)
            return true
        }
        if hasIdle { wakeup.signal() } else { Thread.detachNewThread { self.run(job) } }
    }

    private func run(_ first: UnownedJob) {
        var job = first
        while true {
            unsafe job.runSynchronously(on: asUnownedTaskExecutor())
            state.withLock { $0.idleCount += 1 }
            wakeup.wait()
            job = state.withLock { $0.jobs.removeFirst() }
        }
    }
}
