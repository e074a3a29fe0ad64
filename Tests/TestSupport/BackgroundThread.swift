import Foundation
import Synchronization

/// A thread that runs a body which blocks, so that it does not hold one of Swift's own.
package final class BackgroundThread: Sendable {
    private let outcome = Mutex<Result<Void, any Error>?>(nil)
    /// Asked without the lock: a mutex that is waited for while its owner's thread ends is a fatal error of Swift's.
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

    /// Waits for its end, and throws what it threw.
    package func wait() throws {
        done.wait()
        done.signal()
        try outcome.withLock { try $0?.get() }
    }
}
