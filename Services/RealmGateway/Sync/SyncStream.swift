import Hummingbird
import NIOCore

/// The connection's side of a device's stream: it waits, and writes what the session has to say.
///
/// A task keeps the memory that its deepest calls took until it ends, also while it only waits, and a connection's task
/// lasts for as long as its device is live. So this one calls nothing deep: what is read from the database is read by
/// tasks that end, and what the device has is known by the session, in memory that is no task's.
struct SyncStream: Sendable {
    let session: SyncSession

    @concurrent func run(_ writer: inout any ResponseBodyWriter) async throws {
        session.services.hub.watch(session.outbox, of: session.access.caller)
        defer { session.services.hub.leave(session.outbox, in: session.environment) }
        try await catchUp(&writer)
        if session.isLive { try await follow(&writer) }
    }

    /// The next lines are read while the last are written.
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
            session.outbox.restMax(session.services.limits.keepaliveMax)
            switch await session.answer(to: await session.outbox.next()) {
            case .end: return
            case .write(let lines, let isBehind):
                try await write(lines, &writer)
                if isBehind { try await catchUp(&writer) }
            }
        }
    }

    @concurrent private func write(_ lines: [ByteBuffer], _ writer: inout any ResponseBodyWriter) async throws {
        if lines.isEmpty { return }
        session.outbox.isWriting(true)
        defer { session.outbox.isWriting(false) }
        if lines.count == 1 {
            try await writer.write(lines[0])
        } else {
            try await writer.write(contentsOf: lines)
        }
    }
}
