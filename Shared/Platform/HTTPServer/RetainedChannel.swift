internal import HTTPTypes
package import HummingbirdCore
internal import Logging
internal import NIOCore
internal import ServiceSettings

extension HTTPServerBuilder {
    /// Hummingbird's HTTP/1.1 server with safe shutdown: see `RetainedChannel`.
    package static func retainedHTTP1(configuration: HTTP1Channel.Configuration) -> HTTPServerBuilder {
        HTTPServerBuilder { responder in
            let http = HTTP1Channel(responder: responder, configuration: configuration)
            return RetainedChannel(inner: ConformingChannel(http: http, fields: [:]))
        }
    }
}

/// Retains a connection's value until the connection is closed.
///
/// A connection accepted just when the server stops listening is never handled. NIO traps when the last reference to an
/// unfinished `NIOAsyncChannel` is released; a closed one counts as finished.
struct RetainedChannel<Inner: ServerChildChannel>: ServerChildChannel {
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
            try channel.pipeline.syncOperations.addHandler(Retainer(value))
            return value
        }
    }

    func handle(value: Inner.Value, logger: Logger) async { await inner.handle(value: value, logger: logger) }
}

private final class Retainer: ChannelInboundHandler {
    typealias InboundIn = Any

    private var value: (any Sendable)?

    init(_ value: any Sendable) { self.value = value }

    /// At this time the whole pipeline has processed the close.
    func handlerRemoved(context: ChannelHandlerContext) { value = nil }
}
