import Essentials
import HTTPTypes
import HummingbirdCore
import Logging
import NIOCore
import NIOHTTP1
import NIOHTTPTypes
import NIOHTTPTypesHTTP1
import NIOWebSocket
import Synchronization

/// HTTP/1.1 connections whose first request may open a WebSocket instead.
///
/// Only the first, as NIO's upgrade has it: a connection ends after an answer.
///
/// Until the first head is whole a ``FirstHead`` answers what is none; behind it ``HTTPConformance`` does.
struct UpgradingChannel: ServerChildChannel {
    typealias HTTPConnection = NIOAsyncChannel<HTTPRequestPart, HTTPResponsePart>

    enum Connection: Sendable {
        case http(HTTPConnection)
        case webSocket(WebSocket.Channel, WebSocketRoute.Body)
        /// The handshake was answered with a problem.
        case refused
    }

    struct Value: ServerChildChannelValue {
        let channel: any Channel
        let connection: EventLoopFuture<Connection>
    }

    let http: HTTP1Channel
    let route: WebSocketRoute
    /// What every answer says.
    let fields: HTTPFields
    /// How long the first request's head may take.
    let headMax: Duration

    func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Value> {
        channel.eventLoop.makeCompletedFuture {
            var limits = NIOHTTPDecoderLimitConfiguration()
            limits.maxHeaderFieldSize = http.configuration.httpDecoder.maxHeaderFieldSize
            limits.maxHeaderListSize = http.configuration.httpDecoder.maxHeaderListSize
            limits.maxHeaderFieldCount = http.configuration.httpDecoder.maxHeaderFieldCount
            let handshake = Handshake()
            var configuration = NIOUpgradableHTTPServerPipelineConfiguration(
                upgradeConfiguration: .init(upgraders: [upgrader(handshake)]) { channel in
                    handshake.isRefused ? channel.eventLoop.makeSucceededFuture(.refused) : plain(channel, logger)
                })
            configuration.enablePipelining = false
            configuration.enableResponseHeaderValidation = false
            configuration.enableErrorHandling = false
            configuration.decoderConfiguration = limits
            let first = FirstRequestWatch(max: .milliseconds(headMax.milliseconds))
            try channel.pipeline.syncOperations.addHandler(first)
            let connection = try channel.pipeline.syncOperations.configureUpgradableHTTPServerPipeline(
                configuration: configuration)
            let upgrading = try channel.pipeline.syncOperations.handler(
                type: NIOTypedHTTPServerUpgradeHandler<Connection>.self)
            try channel.pipeline.syncOperations.addHandler(FirstHead(fields), position: .before(upgrading))
            let watch = NIOLoopBound(first, eventLoop: channel.eventLoop)
            connection.whenComplete { _ in watch.value.requestCame() }
            return Value(channel: channel, connection: connection)
        }
    }

    func handle(value: Value, logger: Logger) async {
        guard let connection = try? await value.connection.get() else {
            try? await value.channel.close()
            return
        }
        switch connection {
        case .http(let channel): await http.handle(value: channel, logger: logger)
        case .webSocket(let channel, let body):
            try? await channel.executeThenClose { inbound, outbound in
                await WebSocket(channel.channel, outbound, limits: route.limits).run(inbound, body)
            }
        case .refused: try? await value.channel.closeFuture.get()
        }
    }

    private func upgrader(_ handshake: Handshake) -> NIOTypedWebSocketServerUpgrader<Connection> {
        NIOTypedWebSocketServerUpgrader(
            maxFrameSize: route.limits.messageBytesMax,
            shouldUpgrade: { [route, fields] channel, head in
                let request = WebSocketRoute.Request(
                    path: head.uri, headers: head.headers.map { ($0.name, $0.value) },
                    peer: channel.remoteAddress?.ipAddress)
                return channel.eventLoop.makeFutureWithTask {
                    switch await route.admit(request) {
                    case .open(let body):
                        handshake.body = body
                        return HTTPHeaders()
                    case .refuse(let problem):
                        handshake.isRefused = true
                        Self.answer(problem, fields, on: channel)
                        return nil
                    }
                }
            },
            upgradePipelineHandler: { channel, _ in
                channel.eventLoop.makeCompletedFuture {
                    guard let body = handshake.body else {
                        throw ChannelError.inappropriateOperationForState
                    }
                    try channel.pipeline.syncOperations.addHandler(QuiesceHandler())
                    return .webSocket(try WebSocket.Channel(wrappingChannelSynchronously: channel), body)
                }
            })
    }

    /// NIO forgets a request whose upgrade is refused: it is answered here.
    private static func answer(_ problem: Problem, _ fields: HTTPFields, on channel: any Channel) {
        for part in problem.parts(fields) { channel.write(part, promise: nil) }
        channel.flush()
        channel.close(mode: .output, promise: nil)
        channel.closeAfterLastAnswer()
    }

    /// What `HTTP1Channel` sets up behind its decoder.
    private func plain(_ channel: any Channel, _ logger: Logger) -> EventLoopFuture<Connection> {
        channel.eventLoop.makeCompletedFuture {
            try channel.pipeline.syncOperations.addHandler(HTTPConformance(fields, isForOneRequest: true))
            try channel.pipeline.syncOperations.addHandler(HTTP1ToHTTPServerCodec(secure: false))
            try channel.pipeline.syncOperations.addHandlers(http.configuration.additionalChannelHandlers())
            try channel.pipeline.syncOperations.addHandler(
                HTTPConnectionStateHandler(
                    idleTimeout: http.configuration.idleTimeout.map { .init($0) }, logger: logger))
            return .http(
                try HTTPConnection(
                    wrappingChannelSynchronously: channel, configuration: .init(isOutboundHalfClosureEnabled: true)))
        }
    }
}

/// What became of a connection's handshake, between its steps.
private final class Handshake: Sendable {
    private let state = Mutex<(body: WebSocketRoute.Body?, isRefused: Bool)>((nil, false))

    var body: WebSocketRoute.Body? {
        get { state.withLock { $0.body } }
        set { state.withLock { $0.body = newValue } }
    }

    var isRefused: Bool {
        get { state.withLock { $0.isRefused } }
        set { state.withLock { $0.isRefused = newValue } }
    }
}

/// Answers a first head that is none, which NIO would not before it knows whether to upgrade; and makes a plain
/// request of one that asks for an upgrade but is no whole handshake (RFC 6455 §4.2.1): NIO would neither upgrade nor
/// answer it.
private final class FirstHead: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPServerRequestPart
    typealias OutboundOut = HTTPServerResponsePart

    private let fields: HTTPFields
    private var isAnswered = false

    init(_ fields: HTTPFields) { self.fields = fields }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard error is HTTPParserError, !isAnswered else { return context.fireErrorCaught(error) }
        isAnswered = true
        for part in Problem.malformedRequest.parts(fields) { context.write(wrapOutboundOut(part), promise: nil) }
        context.flush()
        context.close(mode: .output, promise: nil)
        context.channel.closeAfterLastAnswer()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        // Only the first head may upgrade; what comes later may not even be HTTP.
        defer { context.pipeline.syncOperations.removeHandler(self, promise: nil) }
        guard case .head(var head) = unwrapInboundIn(data), !Self.isHandshake(head) else {
            return context.fireChannelRead(data)
        }
        head.headers.remove(name: "upgrade")
        context.fireChannelRead(wrapInboundOut(.head(head)))
    }

    private static func isHandshake(_ head: HTTPRequestHead) -> Bool {
        let headers = head.headers
        return head.method == .GET && head.version == .http1_1
            && headers[canonicalForm: "upgrade"].map({ $0.lowercased() }) == ["websocket"]
            && headers[canonicalForm: "connection"].contains(where: { $0.lowercased() == "upgrade" })
            && headers["sec-websocket-version"] == ["13"] && headers["sec-websocket-key"].map(\.utf8.count) == [24]
            && !headers.contains(name: "content-length") && !headers.contains(name: "transfer-encoding")
    }
}

/// Closes a connection that sends no whole request head in time, and at a shutdown one that has sent none.
private final class FirstRequestWatch: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer

    private let limit: TimeAmount
    private var timer: Scheduled<Void>?
    private var hasCome = false

    init(max: TimeAmount) { limit = max }

    func handlerAdded(context: ChannelHandlerContext) {
        let channel = context.channel
        timer = context.eventLoop.scheduleTask(in: limit) { channel.close(promise: nil) }
    }

    func requestCame() {
        hasCome = true
        timer?.cancel()
        timer = nil
    }

    func handlerRemoved(context: ChannelHandlerContext) { timer?.cancel() }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if event is ChannelShouldQuiesceEvent, !hasCome {
            context.close(promise: nil)
        } else {
            context.fireUserInboundEventTriggered(event)
        }
    }
}

/// At a shutdown the application ends its sockets by itself; one that it does not know is closed.
private final class QuiesceHandler: ChannelInboundHandler {
    typealias InboundIn = WebSocketFrame

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if event is ChannelShouldQuiesceEvent {
            let channel = context.channel
            // The application's close frame goes first.
            context.eventLoop.scheduleTask(in: .seconds(2)) { channel.close(promise: nil) }
        } else {
            context.fireUserInboundEventTriggered(event)
        }
    }
}
