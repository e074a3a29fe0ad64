import Essentials
import HTTPTypes
import HummingbirdCore
import Logging
import NIOCore
import NIOHTTP1
import NIOHTTPTypes
import NIOHTTPTypesHTTP1

/// Implements requirements of HTTP/1.1 that Hummingbird does not.
///
/// It responds to malformed requests with 400, closes connections that must be closed (RFC 9112 §9.6; always for
/// HTTP/1.0), responds to HTTP/1.0 without chunks (§6.1), omits the body after HEAD and for statuses without one
/// (§6.3), sends `100 Continue` (RFC 9110 §10.1.1), marks streams for proxies, and adds the common header fields to
/// every response.
///
/// It is adjacent to the decoder: later handlers depend on neither versions nor bytes.
final class HTTPConformance: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPServerRequestPart
    typealias OutboundIn = HTTPServerResponsePart
    typealias OutboundOut = HTTPServerResponsePart

    private let fields: HTTPFields
    private let isForOneRequest: Bool
    /// The methods of open requests: a client may pipeline requests.
    private var open = CircularBuffer<HTTPMethod>()
    private var isBodyComplete = true
    /// Whether the client waits for `100 Continue` before it sends the last request's body.
    private var awaitsContinue = false
    /// Whether the current response has no body, even if the route writes one.
    private var omitsBody = false
    /// Whether no further request is read after the last one.
    private var isLast = false
    /// The version of the last request, if older than 1.1.
    private var oldVersion: HTTPVersion?
    /// Whether malformed input follows the open requests.
    private var isMalformed = false
    /// Whether the final response was written.
    private var hasEnded = false

    /// - Parameters:
    ///   - fields: Header fields to add to responses that do not have them.
    ///   - isForOneRequest: Whether each connection is closed after one response.
    init(_ fields: HTTPFields, isForOneRequest: Bool = false) {
        self.fields = fields
        self.isForOneRequest = isForOneRequest
    }

    // MARK: Requests

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head(var head):
            guard !isLast else { return }
            guard Self.isUnambiguous(head) else { return malformed(context) }
            open.append(head.method)
            isBodyComplete = false
            let isOld = (head.version.major, head.version.minor) < (1, 1)
            if isOld { oldVersion = head.version }
            awaitsContinue =
                !isOld && head.headers[canonicalForm: "expect"].contains { $0.lowercased() == "100-continue" }
            // The decoder reads nothing after a request for a protocol upgrade.
            let isUpgrade = head.method == .CONNECT || head.headers.contains(name: "upgrade")
            if isOld || isForOneRequest || isUpgrade || !head.isKeepAlive {
                isLast = true
                head.headers.replaceOrAdd(name: "connection", value: "close")
            }
            context.fireChannelRead(wrapInboundOut(.head(head)))
        case .body:
            awaitsContinue = false
            if !isBodyComplete { context.fireChannelRead(data) }
        case .end:
            awaitsContinue = false
            if !isBodyComplete { context.fireChannelRead(data) }
            isBodyComplete = true
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard error is HTTPParserError || error is ByteToMessageDecoderError else {
            return context.fireErrorCaught(error)
        }
        if !isBodyComplete {
            // The reader of the body receives the error and responds.
            isBodyComplete = true
            isLast = true
            context.fireErrorCaught(error)
        } else if !isLast {
            malformed(context)
        }
    }

    /// Whether all parsers agree on the request's boundaries and host (RFC 9112 §3.2, §6.3): one `Host`, and one body
    /// framing. The decoder rejects most other ambiguities.
    private static func isUnambiguous(_ head: HTTPRequestHead) -> Bool {
        let codings = head.headers["transfer-encoding"]
        let lengths = head.headers["content-length"]
        let hosts = head.headers["host"].count
        return lengths.count <= 1
            && (codings.isEmpty || lengths.isEmpty && codings.map { $0.lowercased() } == ["chunked"])
            && (head.version == .http1_1 ? hosts == 1 : hosts <= 1 && codings.isEmpty)
    }

    private func malformed(_ context: ChannelHandlerContext) {
        isLast = true
        isMalformed = true
        isBodyComplete = true
        if open.isEmpty { rejectMalformed(context) }
    }

    private func rejectMalformed(_ context: ChannelHandlerContext) {
        for part in Problem.malformedRequest.parts(fields) { context.write(wrapOutboundOut(part), promise: nil) }
        context.flush()
        end(context)
    }

    // MARK: Responses

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        guard !hasEnded else {
            promise?.fail(ChannelError.outputClosed)
            return
        }
        switch unwrapOutboundIn(data) {
        case .head(let head): context.write(wrapOutboundOut(.head(completed(head))), promise: promise)
        case .body: context.write(omitsBody ? emptyPart : data, promise: promise)
        case .end:
            if !open.isEmpty { open.removeFirst() }
            // After a chunked head, the encoder would write the terminating chunk.
            let end = omitsBody ? emptyPart : data
            guard isLast, open.isEmpty else { return context.write(end, promise: promise) }
            context.writeAndFlush(end, promise: promise)
            if isMalformed { rejectMalformed(context) } else { self.end(context) }
        }
    }

    /// Sends `100 Continue` when the route reads a body that the client withholds.
    func triggerUserOutboundEvent(context: ChannelHandlerContext, event: Any, promise: EventLoopPromise<Void>?) {
        guard event is ContinueEvent else { return context.triggerUserOutboundEvent(event, promise: promise) }
        if awaitsContinue, open.count == 1, !hasEnded {
            let head = HTTPResponseHead(version: .http1_1, status: .continue)
            context.writeAndFlush(wrapOutboundOut(.head(head)), promise: nil)
        }
        awaitsContinue = false
        promise?.succeed(())
    }

    /// A part without bytes, which completes its promise in order.
    private var emptyPart: NIOAny { wrapOutboundOut(.body(.byteBuffer(ByteBuffer()))) }

    /// Completes the head of the response to the oldest open request.
    private func completed(_ head: HTTPResponseHead) -> HTTPResponseHead {
        var head = head
        omitsBody = open.first == .HEAD || !head.status.mayHaveResponseBody
        for field in fields where !head.headers.contains(name: field.name.rawName) {
            head.headers.add(name: field.name.rawName, value: field.value)
        }
        if head.status.mayHaveResponseBody, !head.headers.contains(name: "content-length") {
            // A stream: proxies forward each part immediately and unchanged.
            head.headers.replaceOrAdd(name: "x-accel-buffering", value: "no")
            head.headers.replaceOrAdd(name: "cache-control", value: "no-store, no-transform")
        }
        if awaitsContinue, open.count == 1 {
            // The body is not read, and the client may or may not send it, so no further request can be parsed.
            isLast = true
        }
        if isLast, !isMalformed, open.count == 1 {
            head.headers.replaceOrAdd(name: "connection", value: "close")
            if let oldVersion { head.version = oldVersion }
        }
        return head
    }

    private func end(_ context: ChannelHandlerContext) {
        hasEnded = true
        context.close(mode: .output, promise: nil)
        context.channel.closeAfterFinalResponse()
    }
}

/// Hummingbird's HTTP/1.1 connections with the requirements of RFC 9112.
struct ConformingChannel: ServerChildChannel {
    let http: HTTP1Channel
    /// The common header fields of all responses.
    let fields: HTTPFields

    func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<HTTP1Channel.Value> {
        http.setup(channel: channel, logger: logger).flatMapThrowing { value in
            let pipeline = channel.pipeline.syncOperations
            let codec = try pipeline.handler(type: HTTP1ToHTTPServerCodec.self)
            try pipeline.addHandler(HTTPConformance(fields), position: .before(codec))
            return value
        }
    }

    func handle(value: HTTP1Channel.Value, logger: Logger) async { await http.handle(value: value, logger: logger) }
}

extension Channel {
    /// Maximum time in which remaining input is read and discarded: an immediate close would reset the connection and
    /// lose the final response (RFC 9112 §9.6).
    private static var lingerMax: TimeAmount { .seconds(2) }

    /// Closes a connection after its final response, with time for the client to read it.
    func closeAfterFinalResponse() { eventLoop.scheduleTask(in: Self.lingerMax) { self.close(promise: nil) } }
}

extension Problem {
    static let malformedRequest = Problem(
        .badRequest, name: "malformed-request", detail: "The request is not a valid HTTP/1.1 request.")

    /// Returns the problem as a connection's final response, for handlers outside the routes.
    ///
    /// - Parameter fields: The common header fields of all responses.
    func parts(_ fields: HTTPFields) -> [HTTPServerResponsePart] {
        let body = ByteBuffer(bytes: json)
        var headers = HTTPHeaders([
            ("content-type", "application/problem+json"), ("content-length", "\(body.readableBytes)"),
            ("date", Timestamp.now().httpText), ("connection", "close"),
        ])
        for field in fields { headers.replaceOrAdd(name: field.name.rawName, value: field.value) }
        for field in self.headers { headers.replaceOrAdd(name: field.name.rawName, value: field.value) }
        let status = HTTPResponseStatus(statusCode: status.code)
        return [
            .head(HTTPResponseHead(version: .http1_1, status: status, headers: headers)), .body(.byteBuffer(body)),
            .end(nil),
        ]
    }
}
