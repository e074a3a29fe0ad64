package import Essentials
package import HTTPServer
package import Hummingbird
import Logging
import NIOCore
package import ServiceLifecycle

/// A part of a process that runs until the process stops.
///
/// Parts are started in their order and stopped in the opposite one.
package struct Component: Sendable {
    let name: String
    let usesEventLoops: Bool
    let make: @Sendable (ComponentEnvironment) -> any Service

    /// Synchronous loops, each on a thread of its own.
    ///
    /// When `body` throws, the error is logged once, the process is not ready, and `body` is run again after a wait
    /// that grows to `restart.waitMax`, for ever. A body that returns early is treated alike.
    ///
    /// - Parameters:
    ///   - isFinal: Whether an error that `body` throws needs a person: it stops the process with status 1.
    ///   - body: Runs until `control.isStopping`, and calls `control.progressed()` on every round.
    package static func worker(
        _ name: String, count: Int = 1, restart: Backoff = Backoff(),
        isFinal: @escaping @Sendable (any Error) -> Bool = { _ in false },
        _ body: @escaping @Sendable (WorkerControl) throws -> Void
    ) -> Component {
        Component(name: name, usesEventLoops: false) { environment in
            WorkerService(
                name: name, count: count, restart: restart, isFinal: isFinal, environment: environment, body: body)
        }
    }

    /// Anything asynchronous. It ends when it is asked to shut down gracefully; ending or throwing before that stops
    /// the process with status 1.
    package static func service(_ name: String, _ service: any Service) -> Component {
        Component(name: name, usesEventLoops: false) { _ in service }
    }

    /// An HTTP/1.1 server. What its routes throw becomes `application/problem+json`.
    ///
    /// - Parameters:
    ///   - port: 0 takes a free one; the log says which.
    ///   - edge: How it meets strangers; `nil` for a server that only the operator's own programs reach.
    ///   - started: Called with the port once it listens.
    ///   - routes: Called once, before the server listens.
    package static func http(
        _ name: String, host: String, port: Int, limits: HTTPLimits = HTTPLimits(), edge: HTTPEdge? = nil,
        started: @escaping @Sendable (_ port: Int) -> Void = { _ in },
        routes: @escaping @Sendable (Router<BasicRequestContext>) -> Void
    ) -> Component {
        http(
            name, host: host, port: port, limits: limits, edge: edge, context: BasicRequestContext.self,
            started: started, routes: routes)
    }

    /// The same with a request context of the service's own, and requests that may open a WebSocket.
    package static func http<RouteContext: RequestContext>(
        _ name: String, host: String, port: Int, limits: HTTPLimits = HTTPLimits(), edge: HTTPEdge? = nil,
        context: RouteContext.Type,
        started: @escaping @Sendable (_ port: Int) -> Void = { _ in }, webSocket: WebSocketRoute? = nil,
        routes: @escaping @Sendable (Router<RouteContext>) -> Void
    ) -> Component where RouteContext.Source == ApplicationRequestContextSource {
        Component(name: name, usesEventLoops: true) { environment in
            environment.health.ready(false, source: name, reason: "starting")
            return HTTPListener(
                name: name, host: host, port: port, limits: limits, edge: edge, logger: environment.logger,
                eventLoops: environment.eventLoops, routes: routes,
                started: { port in
                    environment.health.ready(true, source: name)
                    started(port)
                }, webSocket: webSocket)
        }
    }
}

/// What parts share.
struct ComponentEnvironment: Sendable {
    let logger: Logger
    let health: Health
    let eventLoops: any EventLoopGroup
}
