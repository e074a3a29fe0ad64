import Essentials
import HTTPTypes
package import Hummingbird
import HummingbirdCore
package import Logging
package import NIOCore
import NIOPosix
import ServiceLifecycle
package import ServiceSettings
import Telemetry

/// The limits of an HTTP server.
package struct HTTPLimits: Sendable {
    /// Maximum size of a request body.
    package var bodyBytesMax: Int
    /// Maximum size of a request head, all header fields together.
    package var headerBytesMax: Int
    /// Maximum number of connections; further ones wait in the kernel's queue.
    package var connectionCountMax: Int
    /// Maximum number of connections per network, see ``ClientAddress/network(of:)``; further ones are closed. 0: no
    /// limit.
    package var networkConnectionCountMax: Int
    /// Maximum idle time of a client that is not waiting for a response.
    package var idleMax: Duration
    /// Maximum time from the start of a connection to the end of its first request head.
    package var headMax: Duration
    /// Maximum time from the head of a request to the end of its body.
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
    /// The configured connection limit per network; no limit behind a proxy, whose address is common to all clients.
    package static func networkConnectionCountMax(_ configuration: Configuration) throws(ConfigurationError) -> Int {
        try configuration.integer(.httpProxies) > 0 ? 0 : configuration.integer(.httpNetworkConnectionsMax)
    }
}

/// An HTTP/1.1 server that reports errors as problem details and does not disclose its name or version.
package struct HTTPListener: Service {
    private let name: String
    private let host: String
    private let port: Int
    private let limits: HTTPLimits
    private let edge: HTTPEdge?
    private let logger: Logger
    private let eventLoops: any EventLoopGroup
    private let routes: @Sendable (Router<EdgeContext>) -> Void
    private let started: @Sendable (_ port: Int) -> Void
    private let webSocket: WebSocketRoute?

    /// - Parameters:
    ///   - port: 0 selects a free port, which is logged.
    ///   - edge: Public endpoint settings; `nil` for a server that only internal programs can reach.
    ///   - routes: Called once, before the server listens.
    ///   - started: Called with the port when it listens.
    package init(
        name: String, host: String, port: Int, limits: HTTPLimits, edge: HTTPEdge?, logger: Logger,
        eventLoops: any EventLoopGroup, routes: @escaping @Sendable (Router<EdgeContext>) -> Void,
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
        let router = Router(context: EdgeContext.self)
        router.add(middleware: RequestMetricsMiddleware())
        if let edge {
            router.add(middleware: TracingMiddleware(recorder: .process))
            router.add(middleware: EdgeMiddleware(edge: edge))
        }
        router.add(middleware: ProblemMiddleware(bodyBytesMax: limits.bodyBytesMax))
        routes(router)
        Self.rejectOtherMethods(of: router)
        // Connections share the process's event loops; the limit corresponds to the available file descriptors.
        let configuration = ServerConfiguration(
            address: .hostname(host, port: port),
            availableConnectionsDelegate: .maximum(limits.connectionCountMax, logger: quietLogger))
        var decoder = HTTP1Channel.Configuration.DecoderConfiguration()
        decoder.maxHeaderFieldSize = limits.headerBytesMax
        decoder.maxHeaderListSize = limits.headerBytesMax
        decoder.maxHeaderFieldCount = 100
        let limits = limits
        let certificate = try edge?.tls.map { try ServerCertificate($0, server: name, logger: logger) }
        let renewal = certificate.map { certificate in Task { await certificate.run() } }
        defer { renewal?.cancel() }
        let server = server(
            HTTP1Channel.Configuration(
                additionalChannelHandlers: [RequestDeadline(limits)],
                idleTimeout: .milliseconds(limits.idleMax.milliseconds), httpDecoderConfiguration: decoder),
            fields: edge?.fields ?? [:], certificate: certificate)
        do {
            let responder = RequestResponder(router.buildResponder(), logger: quietLogger)
            try await server.buildServer(
                configuration: configuration, eventLoopGroup: eventLoops, logger: quietLogger,
                responder: { request, writer, channel in
                    try await responder.respond(to: request, channel: channel, with: writer)
                },
                onServerRunning: { channel in didStart(channel) }
            ).run()
        } catch let error as IOError {
            throw ComponentError("\(name) cannot listen on \(host):\(port): \(error.description)")
        } catch let error as SocketAddressError {
            throw ComponentError("\(name) cannot listen on \(host):\(port): \(error)")
        }
    }

    /// - Parameters:
    ///   - fields: The common header fields of all responses.
    ///   - certificate: `nil`: plain HTTP.
    private func server(
        _ configuration: HTTP1Channel.Configuration, fields: HTTPFields, certificate: ServerCertificate?
    ) -> HTTPServerBuilder {
        let counts = NetworkConnections(
            countMax: limits.networkConnectionCountMax, name: name, logger: logger)
        return HTTPServerBuilder { responder in
            func secured(_ inner: some ServerChildChannel) -> any ServerChildChannel {
                let channel = RetainedChannel(inner: inner, counts: counts)
                guard let certificate else { return channel }
                return TLSChannel(inner: channel, certificate: certificate)
            }
            let http = HTTP1Channel(responder: responder, configuration: configuration)
            guard let webSocket else { return secured(ConformingChannel(http: http, fields: fields)) }
            return secured(
                UpgradingChannel(http: http, route: webSocket, fields: fields, headMax: limits.headMax))
        }
    }

    private func didStart(_ channel: any Channel) {
        closeSocketsOnExec()
        let port = channel.localAddress?.port ?? port
        logger.info(
            "server listening", metadata: ["server": "\(name)", "address": "\(host):\(port)", "port": "\(port)"])
        started(port)
    }

    /// Suppresses Hummingbird's start and stop messages, which this module logs itself.
    private var quietLogger: Logger {
        var logger = logger
        logger.logLevel = logger.logLevel <= .debug ? logger.logLevel : max(logger.logLevel, .notice)
        return logger
    }

    /// Responds 405 with `Allow` to a path that exists with other methods (RFC 9110 §15.5.6).
    private static func rejectOtherMethods(of router: Router<EdgeContext>) {
        let unusual: [HTTPRequest.Method] = ["CONNECT", "QUERY"].compactMap { HTTPRequest.Method($0) }
        let byPath = Dictionary(grouping: router.routes, by: { $0.path.description })
        for routes in byPath.values {
            let allowed = routes.map(\.method)
            let allow = allowed.map(\.rawValue).sorted().joined(separator: ", ")
            let others = [.get, .head, .post, .put, .patch, .delete, .options, .trace] + unusual
            for method in others where !allowed.contains(method) {
                router.on(routes[0].path, method: method) { _, _ -> Response in
                    throw Problem(.methodNotAllowed, detail: "Allowed methods: \(allow).", headers: [.allow: allow])
                }
            }
        }
    }
}
