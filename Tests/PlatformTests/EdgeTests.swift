import Foundation
import HTTPClient
import Hummingbird
import Logging
import NIOPosix
import Postgres
import ServiceLifecycle
import Synchronization
import TestSupport
import Testing

@testable import HTTPServer
@testable import ServiceRuntime
@testable import ServiceSettings

/// A public server: slow, oversized and foreign requests, and its own TLS.
@Suite(.ownThreads) struct EdgeTests {
    /// Lends a server's port.
    ///
    /// - Parameter more: Adds routes.
    func withServer(
        _ edge: HTTPEdge = HTTPEdge(), limits: HTTPLimits = HTTPLimits(), webSocket: WebSocketRoute? = nil,
        logger: Logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() },
        routes more: @escaping @Sendable (Router<EdgeContext>) -> Void = { _ in },
        _ body: @escaping @Sendable (Int) async throws -> Void
    ) async throws {
        let environment = ComponentEnvironment(
            logger: logger, health: Health(stallMax: .seconds(60)), eventLoops: MultiThreadedEventLoopGroup.singleton)
        let (ports, announce) = AsyncStream.makeStream(of: Int.self)
        let component = Component.http(
            "test", host: "127.0.0.1", port: 0, limits: limits, edge: edge, started: { announce.yield($0) },
            webSocket: webSocket
        ) { router in
            router.get("page") { _, _ in
                Hummingbird.Response(status: .ok, body: ResponseBody(byteBuffer: .init(string: "page")))
            }
            router.post("echo") { request, _ in
                let body = try await request.body.collect(upTo: 1 << 20)
                return Hummingbird.Response(status: .ok, body: ResponseBody(byteBuffer: body))
            }
            more(router)
        }
        let group = ServiceGroup(services: [component.make(environment)], logger: logger)
        let running = Task { try await group.run() }
        let port = try #require(await ports.first { _ in true })
        let outcome: Result<Void, any Error>
        do { outcome = .success(try await body(port)) } catch { outcome = .failure(error) }
        await group.triggerGracefulShutdown()
        _ = try? await running.value
        try outcome.get()
    }

    private static let quick = HTTPLimits(
        bodyBytesMax: 1 << 16, idleMax: .seconds(4), headMax: .seconds(3), bodyMax: .seconds(3))

    @Test func slowHeadTimesOut() async throws {
        try await withServer(limits: Self.quick) { port in
            let start = ContinuousClock.now
            let response = await trickle("GET /page HTTP/1.1\r\nHost: localhost\r\nX: ", port: port)
            #expect(response.isEmpty && ContinuousClock.now - start < patienceMax)
            // The silent connection too.
            #expect(await exchange("", port: port).isEmpty)
        }
    }

    @Test func slowBodyTimesOut() async throws {
        try await withServer(limits: Self.quick) { port in
            let head = "POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5000\r\n\r\n"
            let response = await trickle(head, port: port)
            #expect(!response.contains("200"))
        }
    }

    @Test func slowSecondHeadTimesOut() async throws {
        try await withServer(limits: Self.quick) { port in
            let first = "GET /page HTTP/1.1\r\nHost: localhost\r\n\r\nGET /page HTTP/1.1\r\nX: "
            let response = await trickle(first, port: port)
            #expect(response.components(separatedBy: "HTTP/1.1 200").count == 2, "\(response)")
        }
    }

    @Test func oversizedRequestsAreRejected() async throws {
        try await withServer(limits: HTTPLimits(bodyBytesMax: 1 << 16)) { port in
            let long = String(repeating: "x", count: 100_000)
            let requests = [
                "GET /\(long) HTTP/1.1\r\nHost: localhost\r\n\r\n",
                "GET /page HTTP/1.1\r\nHost: localhost\r\nX: \(long)\r\n\r\n",
                "GET /page HTTP/1.1\r\nHost: localhost\r\n"
                    + (0..<200).map { "X-\($0): y\r\n" }.joined() + "\r\n",
            ]
            for request in requests {
                let response = await exchange(request, port: port)
                #expect(!response.contains(" 200 "), "\(request.prefix(60)): \(response.prefix(200))")
            }
            let oversized =
                "POST /echo HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 99999999\r\n\r\n"
            #expect(await exchange(oversized, port: port).hasPrefix("HTTP/1.1 413"))
        }
    }

    @Test func everyResponseHasSecurityHeaders() async throws {
        try await withServer { port in
            for path in ["/page", "/nothing"] {
                let response = await get(path, port: port).lowercased()
                for header in [
                    "x-content-type-options: nosniff", "referrer-policy: no-referrer", "cache-control: no-store",
                    "content-security-policy: default-src 'none'; frame-ancestors 'none'",
                ] {
                    #expect(response.contains(header), "\(path): \(header)")
                }
                #expect(!response.contains("strict-transport-security") && !response.contains("\r\nserver:"))
            }
        }
    }

    @Test func onlyConfiguredOriginsAreAllowed() async throws {
        try await withServer(HTTPEdge(origins: ["https://app.example.com"])) { port in
            func request(_ method: String, _ path: String, origin: String) async -> String {
                let preflight = method == "OPTIONS" ? "Access-Control-Request-Method: POST\r\n" : ""
                return await exchange(
                    "\(method) \(path) HTTP/1.1\r\nHost: localhost\r\nOrigin: \(origin)\r\n\(preflight)"
                        + "Connection: close\r\n\r\n", port: port
                ).lowercased()
            }
            let allowed = "access-control-allow-origin: https://app.example.com\r\n"
            let preflight = await request("OPTIONS", "/echo", origin: "https://app.example.com")
            #expect(preflight.hasPrefix("http/1.1 204") && preflight.contains(allowed))
            let fields = "authorization, content-type, if-none-match, traceparent, x-user-agent"
            #expect(preflight.contains("access-control-allow-headers: \(fields)\r\n"))
            #expect(preflight.contains("access-control-allow-methods: get, post, put, delete\r\n"))
            #expect(preflight.contains("access-control-expose-headers: date, etag, retry-after, www-authenticate\r\n"))
            #expect(!preflight.contains("allow-credentials"))
            #expect(await request("GET", "/page", origin: "https://app.example.com").contains(allowed))
            #expect(await request("GET", "/nothing", origin: "https://app.example.com").contains(allowed))
            for origin in [
                "https://evil.example", "http://app.example.com", "https://app.example.com.evil.example", "null",
                "https://app.example.com:444",
            ] {
                for (method, path) in [("OPTIONS", "/echo"), ("GET", "/page")] {
                    let response = await request(method, path, origin: origin)
                    #expect(!response.contains("access-control-allow"), "\(origin)")
                    #expect(response.contains("vary: origin\r\n"))
                    #expect(method == "GET" || response.hasPrefix("http/1.1 405"))
                }
            }
        }
    }

    @Test func serverTerminatesTLS() async throws {
        let authority = try TestAuthority()
        let folder = authority.folder
        try authority.issue(days: 1, in: folder)
        let files = HTTPEdge.TLSFiles(certificate: folder + "/tls.crt", key: folder + "/tls.key")
        try await withServer(HTTPEdge(tls: files), limits: Self.quick) { port in
            var configuration = Client.Configuration()
            configuration.caFile = authority.file
            let client = Client(configuration: configuration)
            let response = try await client.send(HTTPClient.Request("https://127.0.0.1:\(port)/page"))
            #expect(response.status == 200 && response.body == Array("page".utf8))
            #expect(response.headers["Strict-Transport-Security"] == "max-age=31536000")
            client.shutDown()
            // Plain HTTP gets no response, and a missing handshake does not block the server.
            #expect(!(await get("/page", port: port)).contains("200"))
            #expect(await exchange("", port: port).isEmpty)
        }
    }

    @Test func invalidEdgeSettingsAreRejected() throws {
        func edge(_ variables: [String: String]) throws -> HTTPEdge {
            try HTTPEdge(Configuration(Setting.edge, environment: variables))
        }
        #expect(try edge(["FIELDPOST_CORS_ORIGINS": "https://a.example, http://localhost:3000"]).origins.count == 2)
        for variables in [
            ["FIELDPOST_TLS_CERTIFICATE": "/a"], ["FIELDPOST_TLS_KEY": "/a"], ["FIELDPOST_CORS_ORIGINS": "*"],
            ["FIELDPOST_CORS_ORIGINS": "https://a.example/"],
        ] {
            #expect(throws: ConfigurationError.self) { try edge(variables) }
        }
    }
}
