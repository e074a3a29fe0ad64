internal import HTTPTypes
package import HummingbirdCore
internal import Logging
internal import NIOCore
internal import ServiceSettings

extension HTTPServerBuilder {
    /// An HTTP/1.1 server as Hummingbird has it, whose stop does not end the process: see `HeldChannel`.
    package static func heldHTTP1(configuration: HTTP1Channel.Configuration) -> HTTPServerBuilder {
        HTTPServerBuilder { responder in
            let http = HTTP1Channel(responder: responder, configuration: configuration)
            return HeldChannel(inner: ConformingChannel(http: http, fields: [:]))
        }
    }
}

/// Holds what a connection was set up as until the connection is closed.
///
/// Nobody takes a connection that was accepted just when the server stopped listening. NIO ends the process when the
/// last reference to a `NIOAsyncChannel` goes that nobody has finished; a closed one counts as finished.
struct HeldChannel<Inner: ServerChildChannel>: ServerChildChannel {
    let inner: Inner
    var counts: NetworkConnections?

    func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Inner.Value> {
        if let counts, counts.countMax > 0 {
            do {
                try channel.pipeline.syncOperations.addHandler(NetworkLimit(counts))
            } catch {
                return channel.eventLoop.makeFailedFuture(error)
            }
        }
        return inner.setup(channel: channel, logger: logger).flatMapThrowing { value in
            try channel.pipeline.syncOperations.addHandler(Holder(value))
            return value
        }
    }

    func handle(value: Inner.Value, logger: Logger) async { await inner.handle(value: value, logger: logger) }
}

private final class Holder: ChannelInboundHandler {
    typealias InboundIn = Any

    private var value: (any Sendable)?

    init(_ value: any Sendable) { self.value = value }

    /// By now all of the pipeline knows that the channel is closed.
    func handlerRemoved(context: ChannelHandlerContext) { value = nil }
}
