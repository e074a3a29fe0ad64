import Essentials
import NIOCore
import NIOWebSocket
import Synchronization

/// An open WebSocket, the server's side of RFC 6455.
///
/// There is no send buffer: `send` waits until the client has accepted the previous message. A client that accepts
/// nothing within `responseMax`, or does not respond to a ping, is disconnected.
package final class WebSocket: Sendable {
    typealias Channel = NIOAsyncChannel<WebSocketFrame, WebSocketFrame>

    private struct State {
        /// The start of the pending write in monotonic nanoseconds.
        var writingSince: Int64?
        var pingedSince: Int64?
        var isClosed = false
    }

    private let channel: any NIOCore.Channel
    private let outbound: NIOAsyncChannelOutboundWriter<WebSocketFrame>
    private let limits: WebSocketRoute.Limits
    private let state = Mutex(State())
    private let incoming: AsyncStream<String>.Continuation
    /// The client's messages, until the socket ends. More than 16 unread messages close the socket.
    package let messages: AsyncStream<String>

    private static let unreadCountMax = 16

    init(
        _ channel: any NIOCore.Channel, _ outbound: NIOAsyncChannelOutboundWriter<WebSocketFrame>,
        limits: WebSocketRoute.Limits
    ) {
        self.channel = channel
        self.outbound = outbound
        self.limits = limits
        (messages, incoming) = AsyncStream.makeStream(bufferingPolicy: .bufferingOldest(Self.unreadCountMax))
    }

    /// Sends a text and waits until the client's connection has accepted it.
    ///
    /// - Throws: If the socket is closed.
    package func send(_ text: String) async throws {
        try await write(WebSocketFrame(fin: true, opcode: .text, data: ByteBuffer(string: text)))
    }

    // MARK: Running

    /// Runs `body` until it returns or the client closes the socket.
    func run(_ inbound: NIOAsyncChannelInboundStream<WebSocketFrame>, _ body: @escaping WebSocketRoute.Body) async {
        let reason = await withTaskGroup(of: WebSocketClose?.self) { group in
            group.addTask { await self.read(inbound) }
            group.addTask { await self.watch() }
            group.addTask { await body(self) }
            let first = await group.next() ?? nil
            incoming.finish()
            group.cancelAll()
            return first
        }
        await close(reason)
    }

    /// - Returns: The reason for closing the socket; `nil` if the client has disconnected.
    private func read(_ inbound: NIOAsyncChannelInboundStream<WebSocketFrame>) async -> WebSocketClose? {
        var messages = WebSocketMessages(limits: limits)
        var minute: (start: Int64, count: Int) = (SteadyClock.nanoseconds(), 0)
        var refusal: WebSocketClose?
        func refuse(_ reason: WebSocketClose) async {
            refusal = reason
            await close(reason)
        }
        do {
            for try await frame in inbound {
                // Continue reading: unread input would reset the connection, and the client would not receive the
                // reason.
                if refusal != nil { continue }
                let now = SteadyClock.nanoseconds()
                if now - minute.start > 60_000_000_000 { minute = (now, 0) }
                minute.count += 1
                guard minute.count <= limits.framesPerMinuteMax else {
                    await refuse(.tooMany)
                    continue
                }
                switch messages.take(frame) {
                case .incomplete: break
                case .message(let text):
                    if case .dropped = incoming.yield(text) { await refuse(.tooMany) }
                case .ping(let data): try await write(WebSocketFrame(fin: true, opcode: .pong, data: data))
                case .pong: state.withLock { $0.pingedSince = nil }
                case .closed: return .done
                case .refuse(let reason): await refuse(reason)
                }
            }
        } catch {
            return refusal
        }
        return refusal
    }

    /// Sends pings, and closes a socket whose client does not respond or does not read.
    private func watch() async -> WebSocketClose? {
        var pingedAt = SteadyClock.nanoseconds()
        let responseMax = limits.responseMax.milliseconds * 1_000_000
        while !Task.isCancelled {
            try? await Task.sleep(for: min(.seconds(1), limits.pingInterval / 4))
            let now = SteadyClock.nanoseconds()
            let waiting = state.withLock { [$0.writingSince, $0.pingedSince].compactMap(\.self).min() }
            if let waiting, now - waiting > responseMax {
                // Pending frames cannot be sent any more, and a close frame would wait behind them.
                channel.close(promise: nil)
                return .unresponsive
            }
            guard now - pingedAt >= limits.pingInterval.milliseconds * 1_000_000 else { continue }
            pingedAt = now
            state.withLock { $0.pingedSince = $0.pingedSince ?? now }
            // Not awaited: the time until its response is measured.
            Task { try? await self.write(WebSocketFrame(fin: true, opcode: .ping, data: ByteBuffer())) }
        }
        return nil
    }

    private func write(_ frame: WebSocketFrame) async throws {
        let isFirst = state.withLock { state in
            guard !state.isClosed, state.writingSince == nil else { return false }
            state.writingSince = SteadyClock.nanoseconds()
            return true
        }
        defer { if isFirst { state.withLock { $0.writingSince = nil } } }
        try await outbound.write(frame)
    }

    private func close(_ reason: WebSocketClose?) async {
        guard let reason, reason != .unresponsive, !state.withLock({ $0.isClosed }) else { return }
        state.withLock { $0.isClosed = true }
        var data = ByteBuffer()
        data.writeInteger(reason.code)
        data.writeString(String(reason.reason.prefix(100)))
        let frame = WebSocketFrame(fin: true, opcode: .connectionClose, data: data)
        // A client that does not read must not delay this; the connection is closed in any case.
        await withTaskGroup(of: Void.self) { group in
            group.addTask { try? await self.outbound.write(frame) }
            group.addTask { try? await Task.sleep(for: .seconds(1)) }
            _ = await group.next()
            group.cancelAll()
        }
        let channel = channel
        channel.eventLoop.scheduleTask(in: .seconds(1)) { channel.close(promise: nil) }
    }
}
