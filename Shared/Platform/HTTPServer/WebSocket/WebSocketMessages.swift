import NIOCore
import NIOWebSocket

/// Assembles messages from frames and rejects violations of RFC 6455 or the limits. A pure value without a socket or a
/// clock.
struct WebSocketMessages {
    enum Step: Equatable {
        /// The message is incomplete.
        case incomplete
        case message(String)
        case ping(ByteBuffer)
        case pong
        /// The client closes the socket.
        case closed
        case refuse(WebSocketClose)
    }

    let limits: WebSocketRoute.Limits
    private var fragments: [ByteBuffer] = []
    private var bytes = 0

    init(limits: WebSocketRoute.Limits) { self.limits = limits }

    mutating func take(_ frame: WebSocketFrame) -> Step {
        // A client must mask (§5.1); extensions are not negotiated, so their bits must be 0 (§5.2).
        guard frame.maskKey != nil, !frame.rsv1, !frame.rsv2, !frame.rsv3 else { return .refuse(.protocolError) }
        switch frame.opcode {
        case .text: return fragments.isEmpty ? append(frame) : .refuse(.protocolError)
        case .continuation: return fragments.isEmpty ? .refuse(.protocolError) : append(frame)
        case .binary: return .refuse(.unsupported)
        case .ping: return .ping(frame.unmaskedData)
        case .pong: return .pong
        case .connectionClose: return .closed
        default: return .refuse(.protocolError)
        }
    }

    private mutating func append(_ frame: WebSocketFrame) -> Step {
        let data = frame.unmaskedData
        bytes += data.readableBytes
        guard bytes <= limits.messageBytesMax, fragments.count < limits.fragmentCountMax else {
            return .refuse(.tooLarge)
        }
        fragments.append(data)
        guard frame.fin else { return .incomplete }
        let whole = fragments.flatMap { Array($0.readableBytesView) }
        fragments = []
        bytes = 0
        guard let text = String(validating: whole, as: UTF8.self) else { return .refuse(.notText) }
        return .message(text)
    }
}
