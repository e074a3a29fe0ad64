/// What opens a WebSocket on an HTTP server: which requests, and what then runs.
package struct WebSocketRoute: Sendable {
    /// What one socket takes at most.
    package struct Limits: Sendable {
        /// Longest frame, and longest message of several frames.
        package var messageBytesMax = 4_096
        /// Frames of one message.
        package var fragmentCountMax = 16
        /// Messages and pings a client may send in a minute.
        package var framesPerMinuteMax = 240
        /// How often a client is asked whether it is there.
        package var pingInterval = Duration.seconds(20)
        /// How long a client may leave a ping unanswered, or take nothing of what is sent.
        package var answerMax = Duration.seconds(20)

        package init() {}
    }

    /// A request to open one.
    package struct Request: Sendable {
        /// As it came, with the query.
        package let path: String
        package let headers: [(name: String, value: String)]
        /// The address of the peer, which may be a proxy.
        package let peer: String?
    }

    /// Runs while the socket is open; when it returns, the socket is closed.
    package typealias Body = @Sendable (WebSocket) async -> WebSocketClose

    /// What a request to open a socket gets.
    package enum Admission: Sendable {
        case open(Body)
        case refuse(Problem)
    }

    let limits: Limits
    let admit: @Sendable (Request) async -> Admission

    /// - Parameter admit: Asked for each handshake, whatever its path. What is none goes to the server's routes.
    package init(limits: Limits = Limits(), admit: @escaping @Sendable (Request) async -> Admission) {
        self.limits = limits
        self.admit = admit
    }
}

/// Why a socket is closed (RFC 6455 §7.4). Codes from 4000 on are the application's own.
package struct WebSocketClose: Sendable, Equatable, Error {
    package let code: UInt16
    /// For people who read logs, at most 100 bytes of ASCII.
    package let reason: String

    package init(code: UInt16, reason: String) {
        self.code = code
        self.reason = reason
    }

    package static let done = WebSocketClose(code: 1000, reason: "done")
    package static let goingAway = WebSocketClose(code: 1001, reason: "the server is stopping")
    package static let protocolError = WebSocketClose(code: 1002, reason: "protocol error")
    package static let unsupported = WebSocketClose(code: 1003, reason: "only text is understood")
    package static let notText = WebSocketClose(code: 1007, reason: "not UTF-8, or not what is understood")
    package static let tooMany = WebSocketClose(code: 1008, reason: "too many frames")
    package static let tooLarge = WebSocketClose(code: 1009, reason: "message too large")
    package static let failed = WebSocketClose(code: 1011, reason: "the server failed")
    /// Nobody is there to read it.
    package static let unresponsive = WebSocketClose(code: 1006, reason: "the client does not answer")
}
