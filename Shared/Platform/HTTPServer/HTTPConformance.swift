import Essentials
import HTTPTypes
import HummingbirdCore
import Logging
import NIOCore
import NIOHTTP1
import NIOHTTPTypes
import NIOHTTPTypesHTTP1

/// What HTTP/1 asks of a server around requests and their answers, which Hummingbird leaves out.
///
/// It answers what is no request with 400, ends connections that are to end (RFC 9112 §9.6; those of HTTP/1.0 always),
/// answers HTTP/1.0 without chunks (§6.1), sends no body after a HEAD request and with the statuses that have none
/// (§6.3), sends `100 Continue` (RFC 9110 §10.1.1), marks streams for proxies, and gives every answer the fields that
/// every answer has.
/// It stands next to the decoder: what is behind it knows neither versions nor bytes.
final class HTTPConformance: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPServerRequestPart
    typealias OutboundIn = HTTPServerResponsePart
    typealias OutboundOut = HTTPServerResponsePart

    private let fields: HTTPFields
    private let isForOneRequest: Bool
    /// The methods of requests that are not answered yet: a client may send the next before the answer.
    private var open = CircularBuffer<HTTPMethod>()
    private var isBodyWhole = true
    /// The client sends the last request's body only after `100 Continue`.
    private var awaitsContinue = false
    /// The current response has no body, even if the routes write one.
    private var omitsBody = false
    /// Nothing is read behind the last request.
    private var isLast = false
    /// The last request's, where it is older than 1.1.
    private var oldVersion: HTTPVersion?
    /// What follows the requests that are not answered yet is none.
    private var isMalformed = false
    /// The last answer was written.
    private var hasEnded = false

    /// - Parameters:
    ///   - fields: Added to each answer that does not have them.
    ///   - isForOneRequest: Whether each connection ends after an answer.
    init(_ fields: HTTPFields, isForOneRequest: Bool = false) {
        self.fields = fields
        self.isForOneRequest = isForOneRequest
    }

    // MARK: Requests

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head(var head):
            guard !isLast else { return }
            guard Self.isPlain(head) else { return malformed(context) }
            open.append(head.method)
            isBodyWhole = false
            let isOld = (head.version.major, head.version.minor) < (1, 1)
            if isOld { oldVersion = head.version }
            awaitsContinue =
                !isOld && head.headers[canonicalForm: "expect"].contains { $0.lowercased() == "100-continue" }
            // The decoder reads nothing behind a request for a protocol upgrade.
            let isUpgrade = head.method == .CONNECT || head.headers.contains(name: "upgrade")
            if isOld || isForOneRequest || isUpgrade || !head.isKeepAlive {
                isLast = true
                head.headers.replaceOrAdd(name: "connection", value: "close")
            }
            context.fireChannelRead(wrapInboundOut(.head(head)))
        case .body:
            awaitsContinue = false
            if !isBodyWhole { context.fireChannelRead(data) }
        case .end:
            awaitsContinue = false
            if !isBodyWhole { context.fireChannelRead(data) }
            isBodyWhole = true
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard error is HTTPParserError || error is ByteToMessageDecoderError else {
            return context.fireErrorCaught(error)
        }
        if !isBodyWhole {
            // Whoever reads the body is told, and answers.
            isBodyWhole = true
            isLast = true
            context.fireErrorCaught(error)
        } else if !isLast {
            malformed(context)
        }
    }

    /// Whether two programs cannot understand another request by it (RFC 9112 §3.2, §6.3): one `Host`, and one way of
    /// telling where the body ends. The decoder refuses most of the others.
    private static func isPlain(_ head: HTTPRequestHead) -> Bool {
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
        isBodyWhole = true
        if open.isEmpty { refuse(context) }
    }

    private func refuse(_ context: ChannelHandlerContext) {
        for part in Problem.malformedRequest.parts(fields) { context.write(wrapOutboundOut(part), promise: nil) }
        context.flush()
        end(context)
    }

    // MARK: Answers

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        guard !hasEnded else {
            promise?.fail(ChannelError.outputClosed)
            return
        }
        switch unwrapOutboundIn(data) {
        case .head(let head): context.write(wrapOutboundOut(.head(finished(head))), promise: promise)
        case .body: context.write(omitsBody ? nothing : data, promise: promise)
        case .end:
            if !open.isEmpty { open.removeFirst() }
            // After a head that announces chunks, the encoder would write the last one.
            let end = omitsBody ? nothing : data
            guard isLast, open.isEmpty else { return context.write(end, promise: promise) }
            context.writeAndFlush(end, promise: promise)
            if isMalformed { refuse(context) } else { self.end(context) }
        }
    }

    /// Sends `100 Continue` once the routes read a body that the client holds back.
    func triggerUserOutboundEvent(context: ChannelHandlerContext, event: Any, promise: EventLoopPromise<Void>?) {
        guard event is ContinueEvent else { return context.triggerUserOutboundEvent(event, promise: promise) }
        if awaitsContinue, open.count == 1, !hasEnded {
            let head = HTTPResponseHead(version: .http1_1, status: .continue)
            context.writeAndFlush(wrapOutboundOut(.head(head)), promise: nil)
        }
        awaitsContinue = false
        promise?.succeed(())
    }

    /// A part that writes no bytes, but fulfils its promise in order.
    private var nothing: NIOAny { wrapOutboundOut(.body(.byteBuffer(ByteBuffer()))) }

    /// The head of the response to the oldest open request, as it is sent.
    private func finished(_ head: HTTPResponseHead) -> HTTPResponseHead {
        var head = head
        omitsBody = open.first == .HEAD || !head.status.mayHaveResponseBody
        for field in fields where !head.headers.contains(name: field.name.rawName) {
            head.headers.add(name: field.name.rawName, value: field.value)
        }
        if head.status.mayHaveResponseBody, !head.headers.contains(name: "content-length") {
            // A stream: proxies pass on each part as it comes, and leave it as it is.
            head.headers.replaceOrAdd(name: "x-accel-buffering", value: "no")
            head.headers.replaceOrAdd(name: "cache-control", value: "no-store, no-transform")
        }
        if awaitsContinue, open.count == 1 {
            // The body is not read, and a client may leave it out or send it: nothing behind it can be understood.
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
        context.channel.closeAfterLastAnswer()
    }
}

/// HTTP/1.1 connections as Hummingbird has them, and as RFC 9112 does.
struct ConformingChannel: ServerChildChannel {
    let http: HTTP1Channel
    /// What every answer says.
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
    /// How long what a client still sends is read and thrown away: closed at once, the connection would be reset, and
    /// the last answer with it (RFC 9112 §9.6).
    private static var lingerMax: TimeAmount { .seconds(2) }

    /// Closes a connection whose last answer was written, once the client has had the time to read it.
    func closeAfterLastAnswer() { eventLoop.scheduleTask(in: Self.lingerMax) { self.close(promise: nil) } }
}

extension Problem {
    static let malformedRequest = Problem(
        .badRequest, name: "malformed-request", detail: "This is not a request of HTTP/1.1.")

    /// The problem as a connection's last answer, written where no route does.
    ///
    /// - Parameter fields: What every answer says.
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
