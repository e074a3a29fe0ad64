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
/// answers HTTP/1.0 without chunks (§6.1), and gives every answer the fields that every answer has.
/// It stands next to the decoder: what is behind it knows neither versions nor bytes.
final class HTTPConformance: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPServerRequestPart
    typealias OutboundIn = HTTPServerResponsePart
    typealias OutboundOut = HTTPServerResponsePart

    private let fields: HTTPFields
    private let isForOneRequest: Bool
    /// Requests that are not answered yet: a client may send the next before the answer.
    private var openCount = 0
    private var isBodyWhole = true
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
            openCount += 1
            isBodyWhole = false
            let isOld = (head.version.major, head.version.minor) < (1, 1)
            if isOld { oldVersion = head.version }
            if isOld || isForOneRequest || !head.isKeepAlive {
                isLast = true
                head.headers.replaceOrAdd(name: "connection", value: "close")
            }
            context.fireChannelRead(wrapInboundOut(.head(head)))
        case .body:
            if !isBodyWhole { context.fireChannelRead(data) }
        case .end:
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
            isLast = true
            isMalformed = true
            if openCount == 0 { refuse(context) }
        }
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
        case .head(var head):
            for field in fields where !head.headers.contains(name: field.name.rawName) {
                head.headers.add(name: field.name.rawName, value: field.value)
            }
            if isLast, !isMalformed, openCount == 1 {
                head.headers.replaceOrAdd(name: "connection", value: "close")
                if let oldVersion { head.version = oldVersion }
            }
            context.write(wrapOutboundOut(.head(head)), promise: promise)
        case .body: context.write(data, promise: promise)
        case .end:
            openCount -= 1
            guard isLast, openCount == 0 else { return context.write(data, promise: promise) }
            context.writeAndFlush(data, promise: promise)
            if isMalformed { refuse(context) } else { end(context) }
        }
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
