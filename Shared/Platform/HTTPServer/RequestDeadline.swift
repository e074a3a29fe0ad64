import Essentials
import NIOCore
import NIOHTTPTypes

/// Closes a connection whose request takes too long to arrive, however busy its trickle of bytes looks.
///
/// A connection's first head has `headMax` from the moment it was accepted, TLS included; a further one has `idleMax`
/// from the end of the answer before it; a body has `bodyMax` from its head, also if a response came before its end.
/// Until then the rest of such a body is read and discarded (RFC 9112 §9.3): the connection is kept, and a slow client
/// that still sends gets its response instead of a reset.
final class RequestDeadline: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPRequestPart
    typealias OutboundIn = HTTPResponsePart

    private let limits: HTTPLimits
    private var deadline: Scheduled<Void>?
    private var isBodyWhole = true
    /// Requests that are not answered yet: a client may send the next before the answer.
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
            isBodyWhole = false
            openCount += 1
            expect(within: limits.bodyMax, context)
        case .end:
            isBodyWhole = true
            deadline?.cancel()
            // A live stream has none for hours: what it was made of is not kept.
            deadline = nil
        case .body: break
        }
        context.fireChannelRead(data)
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        if case .end = unwrapOutboundIn(data) {
            openCount -= 1
            if isBodyWhole, openCount == 0 { expect(within: limits.idleMax, context) }
        }
        context.write(data, promise: promise)
    }

    private func expect(within time: Duration, _ context: ChannelHandlerContext) {
        deadline?.cancel()
        let channel = context.channel
        deadline = context.eventLoop.scheduleTask(in: .milliseconds(time.milliseconds)) { channel.close(promise: nil) }
    }
}
