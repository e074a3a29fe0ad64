import Essentials
import HTTPTypes
import NIOCore
import NIOHTTPTypes

/// Replaces the `Date` of every response by that of a wrong clock; the server sets the right one after the responder.
final class SkewedDate: ChannelOutboundHandler, RemovableChannelHandler {
    typealias OutboundIn = HTTPResponsePart
    typealias OutboundOut = HTTPResponsePart

    /// Seconds by which the clock is ahead; behind, if negative.
    private let skewSeconds: @Sendable () -> Int

    init(skewSeconds: @escaping @Sendable () -> Int) { self.skewSeconds = skewSeconds }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        let skew = skewSeconds()
        guard skew != 0, case .head(var head) = unwrapOutboundIn(data) else {
            return context.write(data, promise: promise)
        }
        let now = Timestamp.now().millisecondsSinceEpoch
        head.headerFields[.date] = Timestamp(millisecondsSinceEpoch: now + Int64(skew) * 1_000).httpText
        context.write(wrapOutboundOut(.head(head)), promise: promise)
    }
}
