package import Essentials
package import HTTPServer
package import Hummingbird
import Logging
import NIOCore
package import ServiceLifecycle

/// A part of a process that runs until the process stops, such as a worker or a server.
///
/// Components are started in order and stopped in reverse order.
package struct Component: Sendable {
    let name: String
    let usesEventLoops: Bool
    let make: @Sendable (ComponentEnvironment) -> any Service

    /// Creates workers: synchronous loops, each on a separate thread.
    ///
    /// When `body` throws, the error is logged once, the process becomes not ready, and `body` is restarted with
    /// exponential backoff up to `restart.waitMax`, without a limit of attempts. An early return is handled alike.
    ///
    /// - Parameters:
    ///   - isFinal: Whether an error of `body` needs manual action: it stops the process with status 1.
    ///   - body: Runs until `control.isStopping`, and calls `control.progressed()` in every iteration.
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

    /// Creates a component from an asynchronous service. It must run until graceful shutdown; an earlier return or an
    /// error stops the process with status 1.
    package static func service(_ name: String, _ service: any Service) -> Component {
        Component(name: name, usesEventLoops: false) { _ in service }
    }

    /// Creates an HTTP/1.1 server. Errors of its routes become `application/problem+json`.
    ///
    /// - Parameters:
    ///   - port: 0 selects a free port, which is logged.
    ///   - edge: Public endpoint settings; `nil` for a server that only internal programs can reach.
    ///   - started: Called with the port when the server listens.
    ///   - webSocket: The handler of WebSocket handshakes; `nil`: none.
    ///   - routes: Called once, before the server listens.
    package static func http(
        _ name: String, host: String, port: Int, limits: HTTPLimits = HTTPLimits(), edge: HTTPEdge? = nil,
        started: @escaping @Sendable (_ port: Int) -> Void = { _ in }, webSocket: WebSocketRoute? = nil,
        routes: @escaping @Sendable (Router<EdgeContext>) -> Void
    ) -> Component {
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

/// Resources shared by components.
struct ComponentEnvironment: Sendable {
    let logger: Logger
    let health: Health
    let eventLoops: any EventLoopGroup
}
