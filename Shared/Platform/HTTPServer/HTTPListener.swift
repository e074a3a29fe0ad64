import Essentials
import HTTPTypes
package import Hummingbird
import HummingbirdCore
import HummingbirdTLS
package import Logging
package import NIOCore
import NIOPosix
import ServiceLifecycle
package import ServiceSettings
import Telemetry

/// What one HTTP server takes at most.
package struct HTTPLimits: Sendable {
    /// Longest body of a request.
    package var bodyBytesMax: Int
    /// Longest request head: all header fields together.
    package var headerBytesMax: Int
    /// Further connections wait in the kernel's queue.
    package var connectionCountMax: Int
    /// Connections of one network, as ``ClientAddress/network(of:)`` counts it; further ones are closed. 0: no limit.
    package var networkConnectionCountMax: Int
    /// Longest silence of a client that is not waiting for an answer.
    package var idleMax: Duration
    /// Longest time from a connection's beginning to the end of its first request's head.
    package var headMax: Duration
    /// Longest time from the head of a request to the end of its body.
    package var bodyMax: Duration

    package init(
        bodyBytesMax: Int = 1 << 20, headerBytesMax: Int = 32_768, connectionCountMax: Int = 10_000,
        networkConnectionCountMax: Int = 0, idleMax: Duration = .seconds(75), headMax: Duration = .seconds(15),
        bodyMax: Duration = .seconds(120)
    ) {
        self.headMax = headMax
        self.bodyMax = bodyMax
        self.bodyBytesMax = bodyBytesMax
        self.headerBytesMax = headerBytesMax
        self.connectionCountMax = connectionCountMax
        self.networkConnectionCountMax = networkConnectionCountMax
        self.idleMax = idleMax
    }
}

extension HTTPLimits {
    /// Connections of one network, as configured: no limit behind a proxy, whose address is that of all clients.
    package static func networkConnectionCountMax(_ configuration: Configuration) throws(ConfigurationError) -> Int {
        try configuration.integer(.httpProxies) > 0 ? 0 : configuration.integer(.httpNetworkConnectionsMax)
    }
}

/// An HTTP/1.1 server whose errors are problems, and which names neither itself nor its version.
package struct HTTPListener<RouteContext: RequestContext & Sendable>: Service
where RouteContext.Source == ApplicationRequestContextSource {
    private let name: String
    private let host: String
    private let port: Int
    private let limits: HTTPLimits
    private let edge: HTTPEdge?
    private let logger: Logger
    private let eventLoops: any EventLoopGroup
    private let routes: @Sendable (Router<RouteContext>) -> Void
    private let started: @Sendable (_ port: Int) -> Void
    private let webSocket: WebSocketRoute?

    /// - Parameters:
    ///   - port: 0 takes a free one; the log says which.
    ///   - edge: Public endpoint settings; `nil` for a server that only the operator's own programs reach.
    ///   - routes: Called once, before the server listens.
    ///   - started: Called with the port once it listens.
    package init(
        name: String, host: String, port: Int, limits: HTTPLimits, edge: HTTPEdge?, logger: Logger,
        eventLoops: any EventLoopGroup, routes: @escaping @Sendable (Router<RouteContext>) -> Void,
        started: @escaping @Sendable (_ port: Int) -> Void, webSocket: WebSocketRoute?
    ) {
        self.name = name
        self.host = host
        self.port = port
        self.limits = limits
        self.edge = edge
        self.logger = logger
        self.eventLoops = eventLoops
        self.routes = routes
        self.started = started
        self.webSocket = webSocket
    }

    package func run() async throws {
        let router = Router(context: RouteContext.self)
        router.add(middleware: RequestMetricsMiddleware())
        if let edge {
            router.add(middleware: TracingMiddleware(recorder: .process))
            router.add(middleware: EdgeMiddleware(edge: edge))
        }
        router.add(middleware: ProblemMiddleware(bodyBytesMax: limits.bodyBytesMax))
        routes(router)
        Self.refuseOtherMethods(of: router)
        var configuration = ApplicationConfiguration(address: .hostname(host, port: port), serverName: nil)
        // The listener and the connections share the process's event loops, so descriptors are its real limit.
        configuration.availableConnectionsDelegate = .maximum(limits.connectionCountMax, logger: quietLogger)
        var decoder = HTTP1Channel.Configuration.DecoderConfiguration()
        decoder.maxHeaderFieldSize = limits.headerBytesMax
        decoder.maxHeaderListSize = limits.headerBytesMax
        decoder.maxHeaderFieldCount = 100
        let limits = limits
        let plain = server(
            HTTP1Channel.Configuration(
                additionalChannelHandlers: [RequestDeadline(limits)],
                idleTimeout: .milliseconds(limits.idleMax.milliseconds), httpDecoderConfiguration: decoder),
            fields: edge?.fields ?? [:])
        let tls = try edge.flatMap { edge in try edge.tls.map { try edge.configuration(of: $0) } }
        let application = Application(
            responder: ApartResponder(inner: router.buildResponder()),
            server: try tls.map { try .tls(plain, tlsConfiguration: $0) } ?? plain,
            configuration: configuration,
            onServerRunning: { channel in announce(channel) },
            eventLoopGroupProvider: .shared(eventLoops), logger: quietLogger)
        do {
            try await application.run()
        } catch let error as IOError {
            throw ComponentError("\(name) cannot listen on \(host):\(port): \(error.description)")
        } catch let error as SocketAddressError {
            throw ComponentError("\(name) cannot listen on \(host):\(port): \(error)")
        }
    }

    /// - Parameter fields: What every answer says.
    private func server(_ configuration: HTTP1Channel.Configuration, fields: HTTPFields) -> HTTPServerBuilder {
        let counts = NetworkConnections(
            countMax: limits.networkConnectionCountMax, name: name, logger: logger)
        return HTTPServerBuilder { responder in
            let http = HTTP1Channel(
                responder: { request, writer, channel in
                    var request = request
                    if request.headers[.expect] != nil {
                        request.body = RequestBody(
                            asyncSequence: ExpectedBody(body: request.body, channel: channel))
                    }
                    try await responder(request, writer, channel)
                }, configuration: configuration)
            guard let webSocket else {
                return HeldChannel(inner: ConformingChannel(http: http, fields: fields), counts: counts)
            }
            return HeldChannel(
                inner: UpgradingChannel(http: http, route: webSocket, fields: fields, headMax: limits.headMax),
                counts: counts)
        }
    }

    private func announce(_ channel: any Channel) {
        closeSocketsOnExec()
        let port = channel.localAddress?.port ?? port
        logger.info(
            "\(name) listens", metadata: ["address": "\(host):\(port)", "port": "\(port)"])
        started(port)
    }

    /// Hummingbird's own notes about starting and stopping say nothing that this module's do not.
    private var quietLogger: Logger {
        var logger = logger
        logger.logLevel = logger.logLevel <= .debug ? logger.logLevel : max(logger.logLevel, .notice)
        return logger
    }

    /// A path that exists under another method answers 405 with `Allow` (RFC 9110 §15.5.6), not 404.
    private static func refuseOtherMethods(of router: Router<RouteContext>) {
        let unusual: [HTTPRequest.Method] = ["CONNECT", "QUERY"].compactMap { HTTPRequest.Method($0) }
        let byPath = Dictionary(grouping: router.routes, by: { $0.path.description })
        for routes in byPath.values {
            let allowed = routes.map(\.method)
            let allow = allowed.map(\.rawValue).sorted().joined(separator: ", ")
            let others = [.get, .head, .post, .put, .patch, .delete, .options, .trace] + unusual
            for method in others where !allowed.contains(method) {
                router.on(routes[0].path, method: method) { _, _ -> Response in
                    throw Problem(.methodNotAllowed, detail: "Allowed here: \(allow).", headers: [.allow: allow])
                }
            }
        }
    }
}

/// Has each request answered in a task of its own.
///
/// A connection's task keeps the memory that its deepest calls took until it ends, also while it only waits for what a
/// live device is told next: made there, the calls to answer a request were a third of what such a connection costs.
private struct ApartResponder<Inner: HTTPResponder>: HTTPResponder where Inner.Context: Sendable {
    let inner: Inner

    func respond(to request: Request, context: Inner.Context) async throws -> Response {
        let answer = Task { try await inner.respond(to: request, context: context) }
        return try await withTaskCancellationHandler {
            try await answer.value
        } onCancel: {
            answer.cancel()
        }
    }
}
