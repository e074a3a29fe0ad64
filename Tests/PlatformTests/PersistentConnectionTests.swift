import Essentials
import Hummingbird
import Logging
import NIOCore
import NIOPosix
import ServiceLifecycle
import Synchronization
import TestSupport
import Testing

@testable import HTTPServer
@testable import ServiceRuntime
@testable import ServiceSettings
@testable import Telemetry

/// Responses on a persistent connection: one response per request, in order.
extension EdgeTests {
    private static let patient = HTTPLimits(
        bodyBytesMax: 1 << 16, idleMax: .seconds(60), headMax: .seconds(60), bodyMax: .seconds(60))

    @Test(arguments: 0...1) func persistentConnectionGetsOneResponsePerRequest(kind: Int) async throws {
        try await withServer(
            limits: Self.patient, webSocket: Self.kinds[kind],
            routes: { router in
                for method in ["GET", "HEAD", "POST"].compactMap({ HTTPRequest.Method($0) }) {
                    router.on("stream", method: method) { _, _ in Self.stream(["one ", "two"]) }
                    router.on("none", method: method) { _, _ in
                        Response(status: .noContent, body: ResponseBody(byteBuffer: ByteBuffer(string: "surplus")))
                    }
                    router.on("unchanged", method: method) { _, _ in
                        Response(status: .notModified, body: ResponseBody(byteBuffer: ByteBuffer(string: "surplus")))
                    }
                    router.on("long", method: method) { _, _ in
                        let text = String(repeating: "x", count: 100_000)
                        return Response(status: .ok, body: ResponseBody(byteBuffer: ByteBuffer(string: text)))
                    }
                }
                router.head("page") { _, _ in
                    Response(status: .ok, body: ResponseBody(byteBuffer: ByteBuffer(string: "page")))
                }
            }
        ) { port in
            let connections = KeptConnections(port: port)
            let targets = ["/page", "/echo", "/stream", "/none", "/unchanged", "/long", "/nothing", "*"]
            #expect(await connections.faults(of: targets) == [])
            // Bodies above the limit, and bodies that no route reads.
            for (target, count) in [("/echo", 1 << 17), ("/page", 60_000), ("/page", 1 << 17)] {
                for isChunked in [false, true] {
                    let body = String(repeating: "x", count: count)
                    let request = KeptConnections.Request("POST", target, body: body, isChunked: isChunked)
                    #expect(await connections.faults(of: request) == [])
                }
            }
            // An unsupported upgrade, as requested by `curl --http2` and Java's client.
            let upgrade = ["Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABk"]
            for method in ["GET", "POST"] {
                let request = KeptConnections.Request(method, "/page", fields: upgrade)
                #expect(await connections.faults(of: request) == [])
            }
        }
    }

    /// The same headers as for GET, without the body.
    @Test func headResponsesKeepTheLengthOfTheBody() async throws {
        try await withServer(
            limits: Self.patient,
            routes: { router in
                router.head("page") { _, _ in
                    Response(status: .ok, body: ResponseBody(byteBuffer: ByteBuffer(string: "page")))
                }
                router.head("stream") { _, _ in Self.stream(["one"]) }
            }
        ) { port in
            try await withOwnThread {
                var connection = try RawConnection(port: port)
                connection.send("HEAD /page HTTP/1.1\r\nHost: localhost\r\n\r\n")
                let page = try connection.response(to: "HEAD")
                #expect(page.values("content-length") == ["4"])
                connection.send("HEAD /stream HTTP/1.1\r\nHost: localhost\r\n\r\n")
                let stream = try connection.response(to: "HEAD")
                #expect(stream.values("transfer-encoding") == ["chunked"])
                connection.send("HEAD /nothing HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                let last = try connection.response(to: "HEAD")
                #expect(last.status == 404 && last.isLast)
                expectEnd(&connection)
            }
        }
    }

    @Test func streamsDisableProxyBuffering() async throws {
        try await withServer(
            limits: Self.patient, routes: { router in router.get("stream") { _, _ in Self.stream(["one"]) } }
        ) { port in
            let stream = await get("/stream", port: port).lowercased()
            #expect(stream.contains("\r\nx-accel-buffering: no\r\n"))
            #expect(stream.contains("\r\ncache-control: no-store, no-transform\r\n"))
            let page = await get("/page", port: port).lowercased()
            #expect(!page.contains("x-accel-buffering") && page.contains("\r\ncache-control: no-store\r\n"))
        }
    }

    @Test func adminRequestsGetOneResponseEach() async throws {
        try await withAdminServer { port in
            let targets = ["/metrics", "/health/live", "/health/ready", "/", "/nothing"]
            #expect(await KeptConnections(port: port).faults(of: targets) == [])
        }
    }

    /// Requests that parsers could interpret differently are rejected, and no later input is parsed.
    @Test(arguments: 0...1) func ambiguousRequestsAreRejected(kind: Int) async throws {
        let smuggledCount = Atomic<Int>(0)
        let smuggled = "GET /smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n"
        let length = "Content-Length: \(smuggled.utf8.count)"
        let endings = [
            "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
            "Content-Length: 0\r\n\(length)\r\n\r\n", "\(length)\r\n\(length)\r\n\r\n",
            "Content-Length: 0, 0\r\n\r\n", "Content-Length: +0\r\n\r\n", "Content-Length: 0x0\r\n\r\n",
            "Content-Length: -0\r\n\r\n", "Content-Length: 0 0\r\n\r\n", "Content-Length:\r\n\r\n",
            "Content-Length: 99999999999999999999\r\n\r\n", "Content-Length : 0\r\n\r\n",
            "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n", "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
            "Transfer-Encoding: identity\r\n\r\n", "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
            "Transfer-Encoding: identity, chunked\r\n\r\n0\r\n\r\n",
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
            "Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
            "Transfer-Encoding: \u{b}chunked\r\n\r\n0\r\n\r\n", "Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n",
            "Transfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n", "X: y\r\n z\r\n\r\n", "X: a\u{0}b\r\n\r\n",
            "X Y: z\r\n\r\n", "X: a\rContent-Length: 5\r\n\r\n", "Host: other\r\n\r\n",
            "Transfer-Encoding: chunked\r\n\r\n0x0\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n-0\r\n\r\n",
            "Transfer-Encoding: chunked\r\n\r\n\r\n0\r\n\r\n",
            "Transfer-Encoding: chunked\r\n\r\n10000000000000000\r\n\r\n",
        ]
        let requests =
            endings.map { "POST /page HTTP/1.1\r\nHost: localhost\r\n\($0)" } + [
                "POST /page HTTP/1.1\r\nContent-Length: 0\r\n\r\n",
                "POST /page HTTP/1.0\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
                "GET /page HTTP/1.1\r\nHost: localhost\r\nX: \(String(repeating: "x", count: 100_000))\r\n\r\n",
            ]
        try await withServer(
            limits: Self.patient, webSocket: Self.kinds[kind],
            routes: { router in
                router.get("smuggled") { _, _ -> String in
                    smuggledCount.add(1, ordering: .relaxed)
                    return "smuggled"
                }
            }
        ) { port in
            for request in requests {
                let name = "\(request.prefix(120).debugDescription)"
                try await withOwnThread {
                    var connection = try RawConnection(port: port)
                    connection.send(request + smuggled)
                    let status = try connection.response(to: "POST").status
                    // A request with a valid head gets its response before its body is found to be malformed.
                    #expect(status == 400 || status == 405 && request.contains("\r\n\r\n"), "\(name): \(status)")
                    let rest = connection.rest()
                    #expect(rest.isEmpty || status == 405 && rest.hasPrefix("HTTP/1.1 400 "), "\(name): \(rest)")
                }
            }
        }
        let count = smuggledCount.load(ordering: .relaxed)
        #expect(count == 0)
    }

    static func stream(_ parts: [String]) -> Response {
        Response(
            status: .ok,
            body: ResponseBody { writer in
                for part in parts { try await writer.write(ByteBuffer(string: part)) }
                try await writer.finish(nil)
            })
    }

    /// Lends the port of a service's admin server.
    func withAdminServer(_ body: @escaping @Sendable (Int) async throws -> Void) async throws {
        let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        let health = Health(stallMax: .seconds(60))
        let (ports, announce) = AsyncStream.makeStream(of: Int.self)
        let admin = AdminServer.component(host: "127.0.0.1", port: 0, health: health, metrics: MetricsRegistry()) {
            announce.yield($0)
        }
        let environment = ComponentEnvironment(
            logger: logger, health: health, eventLoops: MultiThreadedEventLoopGroup.singleton)
        let group = ServiceGroup(services: [admin.make(environment)], logger: logger)
        let running = Task { try await group.run() }
        let port = try #require(await ports.first { _ in true })
        let outcome: Result<Void, any Error>
        do { outcome = .success(try await body(port)) } catch { outcome = .failure(error) }
        await group.triggerGracefulShutdown()
        _ = try? await running.value
        try outcome.get()
    }
}

/// Reads the next response, which must have a status.
func expect(
    _ status: Int, _ method: String, _ connection: inout RawConnection,
    sourceLocation: SourceLocation = #_sourceLocation
) throws {
    let response = try connection.response(to: method)
    #expect(response.status == status, sourceLocation: sourceLocation)
}

/// Waits for the end of a connection without further output.
func expectEnd(_ connection: inout RawConnection, sourceLocation: SourceLocation = #_sourceLocation) {
    let rest = connection.rest()
    #expect(rest.isEmpty, sourceLocation: sourceLocation)
}
