internal import CCurl
import Glibc
import Synchronization

/// A request or an e-mail in the client's command queue.
final class QueuedRequest: Sendable {
    let id: UInt64
    let request: Request
    /// The e-mail to send, instead of a request, to the same address.
    let mail: Mail?
    /// Set before the cancellation is posted, so that it takes effect even if it is processed before the start.
    let isCancelled = Atomic<Bool>(false)

    private static let lastID = Atomic<UInt64>(0)

    init(_ request: Request, _ mail: Mail? = nil) {
        id = QueuedRequest.lastID.wrappingAdd(1, ordering: .relaxed).newValue
        self.request = request
        self.mail = mail
    }
}

/// The commands for the client's thread. The number of queued starts is at most the number of waiting callers.
final class CommandQueue: Sendable {
    enum Command: Sendable {
        case send(QueuedRequest, CheckedContinuation<Result<Response, HTTPError>, Never>)
        case stream(QueuedRequest, StreamBuffer, idleMax: Duration?)
        case cancel(UInt64)
        /// The reader of a paused stream has capacity again.
        case resume(UInt64)
        case stop
    }

    private struct State {
        var commands: [Command] = []
        var isClosed = false
    }

    private let state = Mutex(State())
    /// An eventfd that is readable while commands are queued.
    let eventDescriptor: Int32

    init() {
        eventDescriptor = eventfd(0, Int32(EFD_NONBLOCK | EFD_CLOEXEC))
    }

    deinit { close(eventDescriptor) }

    /// - Returns: False if the client's thread has ended and the command will not be processed.
    func post(_ command: Command) -> Bool {
        let (isAccepted, wasEmpty) = state.withLock { state in
            guard !state.isClosed else { return (false, false) }
            state.commands.append(command)
            return (true, state.commands.count == 1)
        }
        if wasEmpty { eventfd_write(eventDescriptor, 1) }
        return isAccepted
    }

    /// Returns the unprocessed commands.
    ///
    /// - Parameter isLast: Whether to reject further commands.
    func take(isLast: Bool = false) -> [Command] {
        state.withLock { state in
            if isLast { state.isClosed = true }
            defer { state.commands = [] }
            return state.commands
        }
    }
}
