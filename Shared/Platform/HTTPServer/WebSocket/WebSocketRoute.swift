/// The handler of WebSocket handshakes on an HTTP server.
package struct WebSocketRoute: Sendable {
    /// The limits of one socket.
    package struct Limits: Sendable {
        /// Maximum size of a frame, and of a message of several frames.
        package var messageBytesMax = 4_096
        /// Maximum number of frames per message.
        package var fragmentCountMax = 16
        /// Maximum number of messages and pings that a client may send per minute.
        package var framesPerMinuteMax = 240
        /// The interval of keep-alive pings.
        package var pingInterval = Duration.seconds(20)
        /// Maximum time until a client responds to a ping or accepts sent data.
        package var responseMax = Duration.seconds(20)

        package init() {}
    }

    /// A handshake request.
    package struct Request: Sendable {
        /// The request target, including the query.
        package let path: String
        package let headers: [(name: String, value: String)]
        /// The address of the peer, which may be a proxy.
        package let peer: String?
    }

    /// Runs while the socket is open; its return closes the socket.
    package typealias Body = @Sendable (WebSocket) async -> WebSocketClose

    /// The response to a handshake.
    package enum Admission: Sendable {
        case open(Body)
        case refuse(Problem)
    }

    let limits: Limits
    let admit: @Sendable (Request) async -> Admission

    /// - Parameter admit: Called for every handshake of any path. Other requests are passed to the server's routes.
    package init(limits: Limits = Limits(), admit: @escaping @Sendable (Request) async -> Admission) {
        self.limits = limits
        self.admit = admit
    }
}

/// The reason for closing a socket (RFC 6455 §7.4). Codes from 4000 are application-defined.
package struct WebSocketClose: Sendable, Equatable, Error {
    package let code: UInt16
    /// A reason for logs, at most 100 bytes of ASCII.
    package let reason: String

    package init(code: UInt16, reason: String) {
        self.code = code
        self.reason = reason
    }

    package static let done = WebSocketClose(code: 1000, reason: "done")
    package static let goingAway = WebSocketClose(code: 1001, reason: "the server is stopping")
    package static let protocolError = WebSocketClose(code: 1002, reason: "protocol error")
    package static let unsupported = WebSocketClose(code: 1003, reason: "only text messages are supported")
    package static let notText = WebSocketClose(code: 1007, reason: "invalid UTF-8 or an invalid message")
    package static let tooMany = WebSocketClose(code: 1008, reason: "too many frames")
    package static let tooLarge = WebSocketClose(code: 1009, reason: "message too large")
    package static let failed = WebSocketClose(code: 1011, reason: "internal error")
    /// The client does not respond or does not read; no close frame is sent.
    package static let unresponsive = WebSocketClose(code: 1006, reason: "the client does not respond")
}
