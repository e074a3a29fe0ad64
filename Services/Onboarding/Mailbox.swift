import HTTPServer
import Postgres
import Synchronization

/// What one socket is still to be told. A session has few events: three, and an error for each of its attempts; each is
/// put in once.
final class Mailbox: Sendable {
    enum Item: Sendable {
        case event(EventStore.Opened)
        case close(WebSocketClose)
    }

    private struct State {
        var seen: Set<Int64> = []
        /// What came before that which was stored before it; `nil` once that is in.
        var early: [EventStore.Opened]? = []
    }

    let session: Bytea
    /// Which of the session's sockets it is: the newest has the highest.
    let number: Int32
    private let state = Mutex(State())
    private let continuation: AsyncStream<Item>.Continuation
    let items: AsyncStream<Item>

    init(session: Bytea, number: Int32) {
        self.session = session
        self.number = number
        (items, continuation) = AsyncStream.makeStream()
    }

    /// Puts an event in, unless it was put in before.
    func offer(_ event: EventStore.Opened) {
        state.withLock { state in
            if state.early != nil { state.early?.append(event) } else { put(event, &state) }
        }
    }

    /// Puts in what was stored before, in the order of ids, and then what came meanwhile.
    func loaded(_ stored: [EventStore.Opened]) {
        state.withLock { state in
            for event in stored + (state.early ?? []) { put(event, &state) }
            state.early = nil
        }
    }

    private func put(_ event: EventStore.Opened, _ state: inout State) {
        guard state.seen.insert(event.position).inserted else { return }
        continuation.yield(.event(event))
    }

    /// Ends the socket once what is in has been sent.
    func close(_ reason: WebSocketClose) {
        continuation.yield(.close(reason))
        continuation.finish()
    }
}

/// Why a session's socket is closed, beside what RFC 6455 has codes for.
enum SessionClose {
    static let expired = WebSocketClose(code: 4001, reason: "the session has expired")
    static let replaced = WebSocketClose(code: 4002, reason: "a newer socket of the session is open")
}
