import Essentials
import NIOCore
import NIOHTTPTypes

/// Closes a connection whose request arrives too slowly, even if bytes keep arriving.
///
/// The first head must arrive within `headMax` from the accept, including TLS; later heads within `idleMax` from the
/// end of the previous response; a body within `bodyMax` from its head, even if the response came earlier. Until then
/// the rest of such a body is read and discarded (RFC 9112 §9.3): the connection stays open, and a slow client that is
/// still sending gets its response instead of a reset.
final class RequestDeadline: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPRequestPart
    typealias OutboundIn = HTTPResponsePart

    private let limits: HTTPLimits
    private var deadline: Scheduled<Void>?
    private var isBodyComplete = true
    /// The number of open requests: a client may pipeline requests.
    private var openCount = 0

    init(_ limits: HTTPLimits) { self.limits = limits }

    func handlerAdded(context: ChannelHandlerContext) { expect(within: limits.headMax, context) }

    func handlerRemoved(context: ChannelHandlerContext) { deadline?.cancel() }

    func channelInactive(context: ChannelHandlerContext) {
        deadline?.cancel()
        context.fireChannelInactive()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head:
            isBodyComplete = false
            openCount += 1
            expect(within: limits.bodyMax, context)
        case .end:
            isBodyComplete = true
            deadline?.cancel()
            // A live stream needs no deadline for hours: release its memory.
            deadline = nil
        case .body: break
        }
        context.fireChannelRead(data)
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        if case .end = unwrapOutboundIn(data) {
            openCount -= 1
            if isBodyComplete, openCount == 0 { expect(within: limits.idleMax, context) }
        }
        context.write(data, promise: promise)
    }

    private func expect(within time: Duration, _ context: ChannelHandlerContext) {
        deadline?.cancel()
        let channel = context.channel
        deadline = context.eventLoop.scheduleTask(in: .milliseconds(time.milliseconds)) { channel.close(promise: nil) }
    }
}
