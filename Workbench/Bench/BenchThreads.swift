import Dispatch
import Glibc
import Synchronization

/// A thread that measures something and is waited for.
final class BenchThread<Success: Sendable>: Sendable {
    private let outcome = Mutex<Result<Success, any Error>?>(nil)
    private let done = DispatchSemaphore(value: 0)

    init(_ body: @escaping @Sendable () throws -> Success) {
        let queue = DispatchQueue(label: "bench")
        queue.async { [self] in
            let result = Result { try body() }
            outcome.withLock { $0 = result }
            done.signal()
        }
    }

    /// Waits for the end, and throws what was thrown.
    func result() throws -> Success {
        done.wait()
        guard let result = outcome.withLock({ $0 }) else { preconditionFailure("the outcome is set before the signal") }
        return try result.get()
    }
}

/// Several threads pass it, one waits until all have; then it stays open.
final class BenchGate: Sendable {
    private let rest: Mutex<Int>
    private let opened = DispatchSemaphore(value: 0)

    init(count: Int) { rest = Mutex(count) }

    func pass() {
        let isOpen = rest.withLock { rest in
            rest -= 1
            return rest <= 0
        }
        if isOpen { opened.signal() }
    }

    func wait() {
        opened.wait()
        opened.signal()
    }
}
