import Hummingbird
import TestSupport
import Testing

@testable import HTTPServer

/// `Expect: 100-continue` (RFC 9110 §10.1.1).
extension EdgeTests {
    private static let patient = HTTPLimits(
        bodyBytesMax: 1 << 16, idleMax: .seconds(60), headMax: .seconds(60), bodyMax: .seconds(60))

    private static func head(_ target: String, _ fields: String...) -> String {
        "POST \(target) HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n"
            + fields.map { $0 + "\r\n" }.joined() + "\r\n"
    }

    @Test(arguments: 0...1) func withheldBodiesGetContinue(kind: Int) async throws {
        try await withServer(limits: Self.patient, webSocket: Self.kinds[kind]) { port in
            for isChunked in [false, true] {
                try await withOwnThread {
                    var connection = try RawConnection(port: port)
                    connection.send(
                        Self.head("/echo", isChunked ? "Transfer-Encoding: chunked" : "Content-Length: 4"))
                    try expect(100, "POST", &connection)
                    connection.send(isChunked ? "4\r\nbody\r\n0\r\n\r\n" : "body")
                    let response = try connection.response(to: "POST")
                    #expect(response.status == 200 && response.body == Array("body".utf8))
                    guard kind == 0 else { return }
                    // The connection stays open.
                    connection.send("GET /page HTTP/1.1\r\nHost: localhost\r\n\r\n")
                    try expect(200, "GET", &connection)
                }
            }
        }
    }

    /// A response without reading the body closes the connection, because the client may or may not send the body.
    @Test func unreadBodiesGetImmediateResponse() async throws {
        try await withServer(limits: Self.patient) { port in
            for (target, length, status) in [("/nothing", 4, 404), ("/page", 4, 405), ("/echo", 1 << 20, 413)] {
                for sendsBody in [false, true] {
                    try await withOwnThread {
                        var connection = try RawConnection(port: port)
                        connection.send(Self.head(target, "Content-Length: \(length)"))
                        let response = try connection.response(to: "POST")
                        #expect(response.status == status && response.isLast, "\(target)")
                        if sendsBody { connection.send(String(repeating: "x", count: length)) }
                        expectEnd(&connection)
                    }
                }
            }
        }
    }

    @Test func bodiesSentImmediatelyGetNoContinue() async throws {
        try await withServer(limits: Self.patient) { port in
            try await withOwnThread {
                var connection = try RawConnection(port: port)
                let complete = Self.head("/echo", "Content-Length: 4") + "body"
                connection.send(complete + complete + Self.head("/echo", "Content-Length: 0"))
                for length in [4, 4, 0] {
                    let response = try connection.response(to: "POST")
                    #expect(response.status == 200 && response.body.count == length)
                }
                // After another request, whose response comes first.
                connection.send(
                    "GET /page HTTP/1.1\r\nHost: localhost\r\n\r\n" + Self.head("/echo", "Content-Length: 4"))
                try expect(200, "GET", &connection)
                try expect(100, "POST", &connection)
                connection.send("body")
                try expect(200, "POST", &connection)
            }
        }
    }

    /// HTTP/1.0 has no 100 (§10.1.1).
    @Test func clientsOfHTTP10GetNoInterimResponse() async throws {
        try await withServer(limits: Self.patient) { port in
            try await withOwnThread {
                var connection = try RawConnection(port: port)
                connection.send("POST /echo HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n")
                connection.send("body")
                try expect(200, "POST", &connection)
                expectEnd(&connection)
            }
        }
    }
}
