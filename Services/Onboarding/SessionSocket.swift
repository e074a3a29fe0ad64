import FoundationEssentials
import HTTPServer
import Logging
import Postgres
import ServiceRuntime
import Telemetry

/// `GET /sessions/{session_id}` as a WebSocket: tells a device its session's events until it has acknowledged them.
struct SessionSocket: Sendable {
    let pool: Pool
    let events: EventStore
    let hub: SessionHub
    let limits: OnboardingLimits
    let clients: ClientAddress
    let logger: Logger

    private struct Acknowledgement: Decodable {
        let acknowledge: Int64
    }

    var route: WebSocketRoute {
        WebSocketRoute(limits: limits.socket) { request in
            let client = clients.text(request)
            do {
                // Numbered before the device hears that it is open: sockets count in the order they were asked for.
                let id = Self.session(in: request.path)
                let claim = try await answering {
                    try await pool.run { [limits] connection in
                        if let claim = try id.flatMap({ try SessionStore.claim($0, on: &connection) }) { return claim }
                        throw try Self.objection(to: id, from: client, limits, on: &connection)
                            ?? Problems.sessionUnknown
                    }
                }
                let mailbox = Mailbox(session: claim.session, number: claim.number)
                return .open { socket in await serve(mailbox, expires: claim.expires, socket) }
            } catch {
                return .refuse((error as? Problem) ?? Problems.databaseUnavailable)
            }
        }
    }

    /// Why a session cannot be opened. Wrong guesses are counted, and refused as such when there are too many: a device
    /// that has a session is not limited for guesses from the same network address.
    static func objection(
        to id: Capability?, from client: String, _ limits: OnboardingLimits, on connection: inout Connection
    ) throws -> Problem? {
        if let id, try SessionStore.isThere(id, on: &connection) { return nil }
        let guesses = RateLimiter.key(guessesOf: client, limits)
        return try RateLimiter.count(guesses, on: &connection) ? Problems.sessionUnknown : Problems.tooMany
    }

    /// The session an address names: `/sessions/` and 43 characters.
    static func session(in path: String) -> Capability? {
        let prefix = "/sessions/"
        guard path.hasPrefix(prefix) else { return nil }
        return Capability(path.dropFirst(prefix.count).prefix { $0 != "?" })
    }

    private func serve(_ mailbox: Mailbox, expires: ContinuousClock.Instant, _ socket: WebSocket) async
        -> WebSocketClose
    {
        // First the hub, then what is stored: nothing falls between, and the mailbox puts it in order.
        hub.add(mailbox, expires: expires)
        defer { hub.remove(mailbox) }
        do {
            let stored = try await pool.run { [events] connection in
                try events.waiting(for: mailbox.session, on: &connection)
            }
            guard let stored else { return .done }
            mailbox.loaded(stored)
            return await run(mailbox, socket)
        } catch {
            logger.warning("a socket failed", metadata: ["error": "\(error)"])
            return .failed
        }
    }

    private func run(_ mailbox: Mailbox, _ socket: WebSocket) async -> WebSocketClose {
        await withTaskGroup(of: WebSocketClose.self) { group in
            group.addTask { await write(mailbox, to: socket) }
            group.addTask { await read(socket, of: mailbox) }
            defer { group.cancelAll() }
            return await group.next() ?? .failed
        }
    }

    private func write(_ mailbox: Mailbox, to socket: WebSocket) async -> WebSocketClose {
        for await item in mailbox.items {
            switch item {
            case .close(let reason): return reason
            case .event(let event):
                do { try await socket.send(event.line) } catch { return .unresponsive }
            }
        }
        return .failed
    }

    private func read(_ socket: WebSocket, of mailbox: Mailbox) async -> WebSocketClose {
        for await text in socket.messages {
            guard let message = try? JSONDecoder().decode(Acknowledgement.self, from: Data(text.utf8)) else {
                return .notText
            }
            do {
                let isDone = try await pool.run { connection in
                    try EventStore.acknowledge(message.acknowledge, of: mailbox.session, on: &connection)
                }
                if isDone { return .done }
            } catch {
                logger.warning("cannot store an acknowledgement", metadata: ["error": "\(error)"])
                return .failed
            }
        }
        return .unresponsive
    }
}
