import Hummingbird
import NIOCore

/// The connection's side of a device's stream: it waits for events, and writes the session's lines.
///
/// A task keeps the memory of its deepest call until it ends, also while it waits, and a connection's task lasts as
/// long as its device is live. Therefore this task calls nothing deep: short-lived tasks read the database, and the
/// session, whose memory belongs to no task, has the state.
struct SyncStream: Sendable {
    let session: SyncSession
    /// Maximum time without a line.
    let keepaliveMax: Duration

    @concurrent func run(_ writer: inout any ResponseBodyWriter) async throws {
        session.services.hub.register(session.buffer, of: session.access.caller)
        defer { session.services.hub.unregister(session.buffer) }
        try await catchUp(&writer)
        if session.isLive { try await follow(&writer) }
    }

    /// Reads the next lines while the previous ones are written.
    @concurrent private func catchUp(_ writer: inout any ResponseBodyWriter) async throws {
        var next = read()
        defer { next.cancel() }
        while true {
            let step = try await next.value
            if !step.isDone { next = read() }
            try await write(step.lines, &writer)
            if step.isDone { return }
        }
    }

    private func read() -> Task<SyncSession.Step, any Error> {
        Task { [session] in try await session.next() }
    }

    @concurrent private func follow(_ writer: inout any ResponseBodyWriter) async throws {
        while true {
            session.buffer.setKeepalive(after: keepaliveMax)
            switch await session.output(for: await session.buffer.next()) {
            case .end: return
            case .write(let lines, let isBehind):
                try await write(lines, &writer)
                if isBehind { try await catchUp(&writer) }
            }
        }
    }

    @concurrent private func write(_ lines: [ByteBuffer], _ writer: inout any ResponseBodyWriter) async throws {
        if lines.isEmpty { return }
        session.buffer.isWriting(true)
        defer { session.buffer.isWriting(false) }
        if lines.count == 1 {
            try await writer.write(lines[0])
        } else {
            try await writer.write(contentsOf: lines)
        }
    }
}
