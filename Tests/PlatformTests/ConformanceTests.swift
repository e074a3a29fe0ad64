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
    /// The server of the device API, and one that opens WebSockets, as onboarding's.
    static let kinds: [WebSocketRoute?] = [nil, WebSocketRoute { _ in .refuse(Problem(.notFound)) }]
    /// Nothing here may wait for the end of a limit: an answer that comes with it is none.
    private static let patient = HTTPLimits(idleMax: .seconds(30), headMax: .seconds(30), bodyMax: .seconds(30))
    private static let common = [
        "x-content-type-options: nosniff", "referrer-policy: no-referrer", "cache-control: no-store",
        "content-security-policy: default-src 'none'; frame-ancestors 'none'", "date: ",
    ]

    /// What is no request is told so at once, as every answer tells, and the connection ends.
    @Test(arguments: 0...1) func whatIsNoRequestIsAnswered(kind: Int) async throws {
        let heads = [
            "NONSENSE\r\n\r\n", "GET /page\r\n\r\n", "GET /page HTTP/9.9\r\n\r\n", "\u{16}\u{3}\u{1}\u{2}\u{0}",
            "GET /page HTTP/1.1\r\nHost: localhost\r\nno colon\r\n\r\n",
            "GET /page HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
            "GET /page HTTP/1.1\r\nHost: localhost\r\nX: \(String(repeating: "x", count: 100_000))\r\n\r\n",
            "POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
        ]
        try await withServer(limits: Self.patient, webSocket: Self.kinds[kind]) { port in
            for head in heads {
                let answer = await exchange(head, port: port).lowercased()
                #expect(answer.hasPrefix("http/1.1 400 "), "\(head.prefix(60)): \(answer.prefix(200))")
                for field in Self.common + ["application/problem+json", "connection: close", "malformed-request"] {
                    #expect(answer.contains(field), "\(head.prefix(60)): \(field)")
                }
            }
        }
    }

    /// A request before it is answered all the same, and first.
    @Test func whatFollowsARequestMayBeNone() async throws {
        try await withServer(limits: Self.patient) { port in
            let answer = await exchange("GET /page HTTP/1.1\r\nHost: localhost\r\n\r\nNONSENSE\r\n\r\n", port: port)
            #expect(answer.hasPrefix("HTTP/1.1 200 "))
            #expect(answer.components(separatedBy: "HTTP/1.1 400 ").count == 2, "\(answer)")
        }
    }

    /// HTTP/1.0 knows no chunks, and a connection ends after an answer (RFC 9112 §6.1, §9.3).
    @Test(arguments: 0...1) func anHTTP10ConnectionEndsWithItsAnswer(kind: Int) async throws {
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
                let answer = await exchange("GET /page HTTP/1.0\r\n\(more)\r\n", port: port)
                #expect(answer.hasPrefix("HTTP/1.0 200 ") && answer.hasSuffix("\r\n\r\npage"), "\(answer)")
                #expect(answer.lowercased().contains("\r\nconnection: close\r\n"))
            }
            let flow = await exchange("GET /flow HTTP/1.0\r\n\r\n", port: port)
            #expect(flow.hasSuffix("\r\n\r\none two"), "\(flow)")
            // Whoever says so themselves too, however they write it.
            for word in ["close", "Close", "x, close"] {
                let request = "GET /page HTTP/1.1\r\nHost: localhost\r\nConnection: \(word)\r\n\r\n"
                let answer = await exchange(request, port: port)
                #expect(answer.hasPrefix("HTTP/1.1 200 ") && answer.contains("close"), "\(answer)")
            }
        }
    }

    /// Clients that hang up and strangers who send nonsense fill no operator's log.
    @Test func brokenRequestsAreNoErrors() async throws {
        let log = Logged()
        let begun = Flags()
        try await withServer(
            limits: Self.patient, logger: Logger(label: "test") { _ in log },
            routes: { router in
                router.post("take") { request, _ in
                    begun.raise()
                    _ = try await request.body.collect(upTo: 1 << 20)
                    return Response(status: .ok)
                }
            }
        ) { port in
            let head = "POST /take HTTP/1.1\r\nHost: localhost\r\n"
            for nonsense in ["nonsense\r\n", "3\r\nabcdef", "fffffffffffffffff\r\n"] {
                let answer = await exchange(head + "Transfer-Encoding: chunked\r\n\r\n" + nonsense, port: port)
                #expect(answer.hasPrefix("HTTP/1.1 400 ") && answer.contains("malformed-request"), "\(answer)")
                for field in Self.common { #expect(answer.lowercased().contains(field)) }
            }
            for rest in ["Content-Length: 5000\r\n\r\nabc", "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"] {
                let count = begun.count
                await hangUp(port: port, after: head + rest) { begun.count > count }
            }
            #expect(await eventually { log.lines.filter { $0.message.contains("body did not come") }.count == 5 })
        }
        #expect(log.lines.filter { $0.level > .debug && $0.message.contains("request") }.map(\.message) == [])
    }
}

/// Counts what tasks say.
private final class Flags: Sendable {
    private let raised = Atomic<Int>(0)

    var count: Int { raised.load(ordering: .acquiring) }
    func raise() { raised.add(1, ordering: .acquiringAndReleasing) }
}

/// Keeps what is logged.
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
