import FoundationEssentials
import HTTPServer
import Logging
import Postgres

/// `GET /sessions/{session_id}` as a WebSocket: sends a session's events to its device until they are acknowledged.
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
                // Numbered before the device receives the upgrade: the order of requests decides which socket is
                // newest.
                let id = Self.session(in: request.path)
                let claim = try await mappingDatabaseErrors {
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

    /// Returns the problem of a session that cannot be opened. Invalid ids count as guesses, which are rate limited:
    /// devices with a session are not affected by guesses from the same network address.
    static func objection(
        to id: Capability?, from client: String, _ limits: OnboardingLimits, on connection: inout Connection
    ) throws -> Problem? {
        if let id, try SessionStore.exists(id, on: &connection) { return nil }
        let guesses = RateLimiter.key(guessesOf: client, limits)
        return try RateLimiter.count(guesses, on: &connection) ? Problems.sessionUnknown : Problems.tooMany
    }

    /// Parses the session id of a path: `/sessions/` and 43 characters.
    static func session(in path: String) -> Capability? {
        let prefix = "/sessions/"
        guard path.hasPrefix(prefix) else { return nil }
        return Capability(path.dropFirst(prefix.count).prefix { $0 != "?" })
    }

    private func serve(_ mailbox: Mailbox, expires: ContinuousClock.Instant, _ socket: WebSocket) async
        -> WebSocketClose
    {
        // Subscribes before loading stored events, so that none is missed; the mailbox restores the order.
        hub.add(mailbox, expires: expires)
        defer { hub.remove(mailbox) }
        do {
            let stored = try await pool.run { [events] connection in
                try events.pendingEvents(for: mailbox.session, on: &connection)
            }
            guard let stored else { return .done }
            mailbox.loaded(stored)
            return await run(mailbox, socket)
        } catch {
            logger.warning("session socket failed", metadata: ["error": "\(error)"])
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
                logger.warning("storing an acknowledgement failed", metadata: ["error": "\(error)"])
                return .failed
            }
        }
        return .unresponsive
    }
}
