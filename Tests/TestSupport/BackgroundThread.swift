import Foundation
import Synchronization

/// A thread that runs a blocking body, so that it occupies none of Swift's own threads.
package final class BackgroundThread: Sendable {
    private let outcome = Mutex<Result<Void, any Error>?>(nil)
    /// Read without the lock: waiting for a mutex while its owner's thread exits is a fatal error in Swift.
    private let hasEnded = Atomic<Bool>(false)
    private let done = DispatchSemaphore(value: 0)

    package init(_ body: @escaping @Sendable () throws -> Void) {
        Thread.detachNewThread { [self] in
            let result = Result { try body() }
            outcome.withLock { $0 = result }
            hasEnded.store(true, ordering: .releasing)
            done.signal()
        }
    }

    package var isDone: Bool { hasEnded.load(ordering: .acquiring) }

    /// Waits until the body ends, and rethrows its error.
    package func wait() throws {
        done.wait()
        done.signal()
        try outcome.withLock { try $0?.get() }
    }
}
