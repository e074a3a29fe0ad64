import Essentials
import FoundationEssentials
import HTTPClient
import Hummingbird
import Logging
import NIOCore
import Postgres
import Synchronization
import Testing

@testable import HTTPServer
@testable import ServiceRuntime
@testable import ServiceSettings
@testable import Telemetry

extension EdgeTests {
    /// The server of the device API, and one with WebSockets like onboarding's.
    static let kinds: [WebSocketRoute?] = [nil, WebSocketRoute { _ in .refuse(Problem(.notFound)) }]
    /// Long timeouts: a response that comes only with a timeout is a failure.
    private static let patient = HTTPLimits(idleMax: .seconds(30), headMax: .seconds(30), bodyMax: .seconds(30))
    private static let common = [
        "x-content-type-options: nosniff", "referrer-policy: no-referrer", "cache-control: no-store",
        "content-security-policy: default-src 'none'; frame-ancestors 'none'", "date: ",
    ]

    /// Malformed input gets an immediate 400 with the common header fields, and the connection is closed.
    @Test(arguments: 0...1) func malformedRequestGets400(kind: Int) async throws {
        let heads = [
            "NONSENSE\r\n\r\n", "GET /page\r\n\r\n", "GET /page HTTP/9.9\r\n\r\n", "\u{16}\u{3}\u{1}\u{2}\u{0}",
            "GET /page HTTP/1.1\r\nHost: localhost\r\nno colon\r\n\r\n",
            "GET /page HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
            "GET /page HTTP/1.1\r\nHost: localhost\r\nX: \(String(repeating: "x", count: 100_000))\r\n\r\n",
            "POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
        ]
        try await withServer(limits: Self.patient, webSocket: Self.kinds[kind]) { port in
            for head in heads {
                let response = await exchange(head, port: port).lowercased()
                #expect(response.hasPrefix("http/1.1 400 "), "\(head.prefix(60)): \(response.prefix(200))")
                for field in Self.common + ["application/problem+json", "connection: close", "malformed-request"] {
                    #expect(response.contains(field), "\(head.prefix(60)): \(field)")
                }
            }
        }
    }

    /// It is formatted again in each second.
    @Test func dateIsThatOfTheResponse() {
        let field = DateField()
        for milliseconds in [1_000, 1_999, 2_000, 1_500] as [Int64] {
            let now = Timestamp(millisecondsSinceEpoch: milliseconds)
            #expect(field.text(at: now) == now.httpText)
        }
    }

    /// RFC 9110 §6.6.1: the time of the response, once.
    @Test func responseHasItsDate() async throws {
        try await withServer(limits: Self.patient) { port in
            let before = Timestamp.now().millisecondsSinceEpoch / 1_000
            let response = await exchange("GET /page HTTP/1.0\r\n\r\n", port: port)
            let dates = response.components(separatedBy: "\r\n").filter { $0.lowercased().hasPrefix("date: ") }
            let date = try #require(dates.first.flatMap { Timestamp.seconds(ofHTTPDate: String($0.dropFirst(6))) })
            #expect(dates.count == 1 && before...(before + 60) ~= Int64(date))
        }
    }

    /// An earlier request gets its response, and first.
    @Test func malformedInputAfterRequestGets400() async throws {
        try await withServer(limits: Self.patient) { port in
            let response = await exchange("GET /page HTTP/1.1\r\nHost: localhost\r\n\r\nNONSENSE\r\n\r\n", port: port)
            #expect(response.hasPrefix("HTTP/1.1 200 "))
            #expect(response.components(separatedBy: "HTTP/1.1 400 ").count == 2, "\(response)")
        }
    }

    /// HTTP/1.0 has no chunks, and a connection is closed after a response (RFC 9112 §6.1, §9.3).
    @Test(arguments: 0...1) func http10ConnectionClosesAfterResponse(kind: Int) async throws {
        try await withServer(
            limits: Self.patient, webSocket: Self.kinds[kind],
            routes: { router in
                router.get("flow") { _, _ in
                    Response(
                        status: .ok,
                        body: ResponseBody { writer in
                            try await writer.write(ByteBuffer(string: "one "))
                            try await writer.write(ByteBuffer(string: "two"))
                            try await writer.finish(nil)
                        })
                }
            }
        ) { port in
            for more in ["", "Connection: keep-alive\r\n"] {
                let response = await exchange("GET /page HTTP/1.0\r\n\(more)\r\n", port: port)
                #expect(response.hasPrefix("HTTP/1.0 200 ") && response.hasSuffix("\r\n\r\npage"), "\(response)")
                #expect(response.lowercased().contains("\r\nconnection: close\r\n"))
            }
            let flow = await exchange("GET /flow HTTP/1.0\r\n\r\n", port: port)
            #expect(flow.hasSuffix("\r\n\r\none two"), "\(flow)")
            // Also if the client requests it, in any spelling.
            for option in ["close", "Close", "x, close"] {
                let request = "GET /page HTTP/1.1\r\nHost: localhost\r\nConnection: \(option)\r\n\r\n"
                let response = await exchange(request, port: port)
                #expect(response.hasPrefix("HTTP/1.1 200 ") && response.contains("close"), "\(response)")
            }
        }
    }

    /// Disconnecting clients and malformed input cause no errors in the log.
    @Test func brokenRequestsAreNotLoggedAsErrors() async throws {
        let log = Logged()
        let started = Flags()
        try await withServer(
            limits: Self.patient, logger: Logger(label: "test") { _ in log },
            routes: { router in
                router.post("take") { request, _ in
                    started.raise()
                    _ = try await request.body.collect(upTo: 1 << 20)
                    return Response(status: .ok)
                }
            }
        ) { port in
            let head = "POST /take HTTP/1.1\r\nHost: localhost\r\n"
            for nonsense in ["nonsense\r\n", "3\r\nabcdef", "fffffffffffffffff\r\n"] {
                let response = await exchange(head + "Transfer-Encoding: chunked\r\n\r\n" + nonsense, port: port)
                #expect(response.hasPrefix("HTTP/1.1 400 ") && response.contains("malformed-request"), "\(response)")
                for field in Self.common { #expect(response.lowercased().contains(field)) }
            }
            for rest in ["Content-Length: 5000\r\n\r\nabc", "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"] {
                let count = started.count
                await hangUp(port: port, after: head + rest) { started.count > count }
            }
            #expect(
                await eventually { log.lines.filter { $0.message.contains("request body not received") }.count == 5 })
        }
        #expect(log.lines.filter { $0.level > .debug && $0.message.contains("request") }.map(\.message) == [])
    }
}

/// Counts signals of tasks.
private final class Flags: Sendable {
    private let raised = Atomic<Int>(0)

    var count: Int { raised.load(ordering: .acquiring) }
    func raise() { raised.add(1, ordering: .acquiringAndReleasing) }
}

/// Records log events.
private final class Logged: LogHandler, Sendable {
    private let all = Mutex<[(level: Logger.Level, message: String)]>([])

    var lines: [(level: Logger.Level, message: String)] { all.withLock { $0 } }

    func log(event: LogEvent) { all.withLock { $0.append((event.level, event.message.description)) } }

    subscript(metadataKey _: String) -> Logger.Metadata.Value? {
        get { nil }
        set {}
    }
    var metadata: Logger.Metadata {
        get { [:] }
        set {}
    }
    var logLevel: Logger.Level {
        get { .trace }
        set {}
    }
}
