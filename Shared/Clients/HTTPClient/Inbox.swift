internal import CCurl
import Glibc
import Synchronization

/// A request on its way to the client's thread.
final class Order: Sendable {
    let id: UInt64
    let request: Request
    /// What is sent instead of a request, to the same address.
    let mail: Mail?
    /// Set before the cancellation is posted, so that it is seen even when it overtakes the start.
    let isCancelled = Atomic<Bool>(false)

    private static let lastID = Atomic<UInt64>(0)

    init(_ request: Request) {
        id = Order.lastID.wrappingAdd(1, ordering: .relaxed).newValue
        self.request = request
        mail = nil
    }

    init(_ mail: Mail) {
        id = Order.lastID.wrappingAdd(1, ordering: .relaxed).newValue
        request = Request("MAIL", mail.server, connectMax: mail.connectMax, totalMax: mail.totalMax)
        self.mail = mail
    }
}

/// What callers ask of the client's thread. It holds at most as many starts as there are waiting callers.
final class Inbox: Sendable {
    enum Command: Sendable {
        case send(Order, CheckedContinuation<Result<Response, HTTPError>, Never>)
        case stream(Order, StreamBuffer, idleMax: Duration?)
        case cancel(UInt64)
        /// The reader of a paused stream has room again.
        case resume(UInt64)
        case stop
    }

    private struct State {
        var commands: [Command] = []
        var isClosed = false
    }

    private let state = Mutex(State())
    /// Readable while commands wait.
    let eventDescriptor: Int32

    init() {
        eventDescriptor = eventfd(0, Int32(EFD_NONBLOCK | EFD_CLOEXEC))
    }

    deinit { close(eventDescriptor) }

    /// - Returns: False when the client's thread has ended and nobody will read the command.
    func post(_ command: Command) -> Bool {
        let (isAccepted, wasEmpty) = state.withLock { state in
            guard !state.isClosed else { return (false, false) }
            state.commands.append(command)
            return (true, state.commands.count == 1)
        }
        if wasEmpty { eventfd_write(eventDescriptor, 1) }
        return isAccepted
    }

    func take() -> [Command] {
        state.withLock { state in
            var taken: [Command] = []
            swap(&taken, &state.commands)
            return taken
        }
    }

    /// Refuses further commands, and returns those that nobody has read.
    func closeForGood() -> [Command] {
        state.withLock { state in
            state.isClosed = true
            var taken: [Command] = []
            swap(&taken, &state.commands)
            return taken
        }
    }
}
