internal import Foundation
internal import Synchronization
package import Testing

/// Runs `body`, which may block, on a thread of its own and as part of the current test.
package func withOwnThread<Success: Sendable>(_ body: @Sendable () throws -> Success) async throws -> Success {
    try await withTaskExecutorPreference(ThreadExecutor.shared) { try body() }
}

/// Each test of the suite, or the test, runs on threads of its own. It may block: it takes none of Swift's few threads
/// from servers and calls that other tests wait for.
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

/// Runs each job at once, on a thread that has nothing to do or on a new one.
private final class ThreadExecutor: TaskExecutor {
    static let shared = ThreadExecutor()

    /// Jobs that idle threads are woken for, and how many others are idle.
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
