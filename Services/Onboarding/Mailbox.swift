import HTTPServer
import Postgres
import Synchronization

/// The send queue of one socket. A session has few events: three, and one error for each attempt; each is queued once.
final class Mailbox: Sendable {
    enum Item: Sendable {
        case event(EventStore.DecryptedEvent)
        case close(WebSocketClose)
    }

    private struct State {
        var seen: Set<Int64> = []
        /// Events that arrived before the stored ones were loaded; `nil` afterwards.
        var buffered: [EventStore.DecryptedEvent]? = []
    }

    let session: Bytea
    /// The socket's number within its session: the newest has the highest.
    let number: Int32
    private let state = Mutex(State())
    private let continuation: AsyncStream<Item>.Continuation
    let items: AsyncStream<Item>

    init(session: Bytea, number: Int32) {
        self.session = session
        self.number = number
        (items, continuation) = AsyncStream.makeStream()
    }

    /// Queues an event, unless it was queued before.
    func offer(_ event: EventStore.DecryptedEvent) {
        state.withLock { state in
            if state.buffered != nil { state.buffered?.append(event) } else { put(event, &state) }
        }
    }

    /// Queues the stored events in the order of their ids, then those that arrived meanwhile.
    func loaded(_ stored: [EventStore.DecryptedEvent]) {
        state.withLock { state in
            for event in stored + (state.buffered ?? []) { put(event, &state) }
            state.buffered = nil
        }
    }

    private func put(_ event: EventStore.DecryptedEvent, _ state: inout State) {
        guard state.seen.insert(event.position).inserted else { return }
        continuation.yield(.event(event))
    }

    /// Closes the socket after sending the queued events.
    func close(_ reason: WebSocketClose) {
        continuation.yield(.close(reason))
        continuation.finish()
    }
}

/// Close codes of sessions, in addition to those of RFC 6455.
enum SessionClose {
    static let expired = WebSocketClose(code: 4001, reason: "the session has expired")
    static let replaced = WebSocketClose(code: 4002, reason: "a newer socket of the session is open")
}
