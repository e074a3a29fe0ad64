import Synchronization

/// The unread bytes of a stream: the client's thread appends, one reader consumes.
final class StreamBuffer: Sendable {
    struct Head: Sendable {
        let status: Int
        let headers: Headers
    }

    private struct State {
        var head: Head?
        var headWaiter: CheckedContinuation<Result<Head, HTTPError>, Never>?
        var chunks: [[UInt8]] = []
        var byteCount = 0
        var chunkWaiter: CheckedContinuation<Result<[UInt8]?, HTTPError>, Never>?
        var isPaused = false
        var isFinished = false
        var error: HTTPError?
    }

    private let state = Mutex(State())
    private let bytesMax: Int
    private let resume: @Sendable () -> Void

    /// - Parameter resume: Called when there is capacity again after a chunk was rejected.
    init(bytesMax: Int, resume: @escaping @Sendable () -> Void) {
        self.bytesMax = bytesMax
        self.resume = resume
    }

    // MARK: The client's thread

    func open(status: Int, headers: Headers) {
        let head = Head(status: status, headers: headers)
        let waiter = state.withLock { state in
            state.head = head
            return state.headWaiter.take()
        }
        waiter?.resume(returning: .success(head))
    }

    /// - Returns: False if the buffer is full: the same bytes must be appended again after `resume`.
    func append(_ chunk: [UInt8]) -> Bool {
        let (isAccepted, waiter) = state.withLock { state in
            if let waiter = state.chunkWaiter.take() { return (true, Optional(waiter)) }
            guard state.byteCount == 0 || state.byteCount + chunk.count <= bytesMax else {
                state.isPaused = true
                return (false, nil)
            }
            state.chunks.append(chunk)
            state.byteCount += chunk.count
            return (true, nil)
        }
        waiter?.resume(returning: .success(chunk))
        return isAccepted
    }

    func finish(_ error: HTTPError?) {
        let (headWaiter, chunkWaiter) = state.withLock { state in
            state.isFinished = true
            state.error = error
            return (state.headWaiter.take(), state.chunkWaiter.take())
        }
        headWaiter?.resume(returning: .failure(error ?? .malformed("the stream ended before the response head")))
        chunkWaiter?.resume(returning: error.map { .failure($0) } ?? .success(nil))
    }

    // MARK: The reader

    func head() async -> Result<Head, HTTPError> {
        await withCheckedContinuation { continuation in
            let available: Result<Head, HTTPError>? = state.withLock { state in
                if let head = state.head { return .success(head) }
                if state.isFinished {
                    return .failure(state.error ?? .malformed("the stream ended before the response head"))
                }
                state.headWaiter = continuation
                return nil
            }
            if let available { continuation.resume(returning: available) }
        }
    }

    /// Waits for the next bytes; returns `nil` at the end. Bytes that arrived before an error are returned before the
    /// error.
    func next() async -> Result<[UInt8]?, HTTPError> {
        await withCheckedContinuation { continuation in
            let (available, wasPaused): (Result<[UInt8]?, HTTPError>?, Bool) = state.withLock { state in
                if !state.chunks.isEmpty {
                    var joined = state.chunks.removeFirst()
                    for chunk in state.chunks { joined.append(contentsOf: chunk) }
                    state.chunks = []
                    state.byteCount = 0
                    let wasPaused = state.isPaused
                    state.isPaused = false
                    return (.success(joined), wasPaused)
                }
                if let error = state.error { return (.failure(error), false) }
                if state.isFinished { return (.success(nil), false) }
                precondition(state.chunkWaiter == nil, "a stream has one reader")
                state.chunkWaiter = continuation
                return (nil, false)
            }
            if wasPaused { resume() }
            if let available { continuation.resume(returning: available) }
        }
    }
}

/// Ends the transfer when no reader of its stream is left.
final class StreamLifetime: Sendable {
    let end: @Sendable () -> Void

    init(end: @escaping @Sendable () -> Void) { self.end = end }

    deinit { end() }
}
