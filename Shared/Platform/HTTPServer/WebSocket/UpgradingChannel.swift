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

/// HTTP/1.1 connections whose first request may be a WebSocket handshake.
///
/// NIO upgrades only the first request, so a connection is closed after one response.
///
/// Until the first head is complete, a ``FirstHeadHandler`` responds to malformed input; afterwards ``HTTPConformance``
/// does.
struct UpgradingChannel: ServerChildChannel {
    typealias HTTPConnection = NIOAsyncChannel<HTTPRequestPart, HTTPResponsePart>

    enum Connection: Sendable {
        case http(HTTPConnection)
        case webSocket(WebSocket.Channel, WebSocketRoute.Body)
        /// The handshake was rejected with a problem.
        case refused
    }

    struct Value: ServerChildChannelValue {
        let channel: any Channel
        let connection: EventLoopFuture<Connection>
    }

    let http: HTTP1Channel
    let route: WebSocketRoute
    /// The common header fields of all responses.
    let fields: HTTPFields
    /// Maximum time until the first request's head is complete.
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
            let timeout = FirstRequestTimeout(max: .milliseconds(headMax.milliseconds))
            try channel.pipeline.syncOperations.addHandler(timeout)
            let connection = try channel.pipeline.syncOperations.configureUpgradableHTTPServerPipeline(
                configuration: configuration)
            let upgrading = try channel.pipeline.syncOperations.handler(
                type: NIOTypedHTTPServerUpgradeHandler<Connection>.self)
            try channel.pipeline.syncOperations.addHandler(FirstHeadHandler(fields), position: .before(upgrading))
            let boundTimeout = NIOLoopBound(timeout, eventLoop: channel.eventLoop)
            connection.whenComplete { _ in boundTimeout.value.requestReceived() }
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
                    let admission = await route.admit(request)
                    handshake.admission.withLock { $0 = admission }
                    switch admission {
                    case .open: return HTTPHeaders()
                    case .refuse(let problem):
                        Self.respond(with: problem, fields, on: channel)
                        return nil
                    }
                }
            },
            upgradePipelineHandler: { channel, _ in
                channel.eventLoop.makeCompletedFuture {
                    guard case .open(let body)? = handshake.admission.withLock({ $0 }) else {
                        throw ChannelError.inappropriateOperationForState
                    }
                    try channel.pipeline.syncOperations.addHandler(QuiesceHandler())
                    return .webSocket(try WebSocket.Channel(wrappingChannelSynchronously: channel), body)
                }
            })
    }

    /// Sends the connection's final response. NIO drops a request whose upgrade is rejected, so it is written here.
    fileprivate static func respond(with problem: Problem, _ fields: HTTPFields, on channel: any Channel) {
        for part in problem.parts(fields) { channel.write(part, promise: nil) }
        channel.flush()
        channel.close(mode: .output, promise: nil)
        channel.closeAfterFinalResponse()
    }

    /// The handlers that `HTTP1Channel` adds after its decoder.
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

/// The state of a connection's handshake between its steps.
private final class Handshake: Sendable {
    /// `nil` before the route has decided.
    let admission = Mutex<WebSocketRoute.Admission?>(nil)

    var isRefused: Bool { if case .refuse? = admission.withLock({ $0 }) { true } else { false } }
}

/// Responds to a malformed first head, which NIO would not before it decides about the upgrade. Converts an incomplete
/// handshake (RFC 6455 §4.2.1) to a plain request, because NIO would neither upgrade nor respond to it.
private final class FirstHeadHandler: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPServerRequestPart

    private let fields: HTTPFields
    private var hasResponded = false

    init(_ fields: HTTPFields) { self.fields = fields }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard error is HTTPParserError, !hasResponded else { return context.fireErrorCaught(error) }
        hasResponded = true
        UpgradingChannel.respond(with: .malformedRequest, fields, on: context.channel)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        // Only the first head can upgrade; later input may not be HTTP.
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

/// Closes a connection without a complete request head within the timeout, and at shutdown one without any request.
private final class FirstRequestTimeout: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer

    private let limit: TimeAmount
    private var timer: Scheduled<Void>?
    private var hasReceivedRequest = false

    init(max: TimeAmount) { limit = max }

    func handlerAdded(context: ChannelHandlerContext) {
        let channel = context.channel
        timer = context.eventLoop.scheduleTask(in: limit) { channel.close(promise: nil) }
    }

    func requestReceived() {
        hasReceivedRequest = true
        timer?.cancel()
        timer = nil
    }

    func handlerRemoved(context: ChannelHandlerContext) { timer?.cancel() }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if event is ChannelShouldQuiesceEvent, !hasReceivedRequest {
            context.close(promise: nil)
        } else {
            context.fireUserInboundEventTriggered(event)
        }
    }
}

/// At shutdown the application closes its WebSockets; this handler closes remaining ones.
private final class QuiesceHandler: ChannelInboundHandler {
    typealias InboundIn = WebSocketFrame

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if event is ChannelShouldQuiesceEvent {
            let channel = context.channel
            // Send the application's close frame first.
            context.eventLoop.scheduleTask(in: .seconds(2)) { channel.close(promise: nil) }
        } else {
            context.fireUserInboundEventTriggered(event)
        }
    }
}
