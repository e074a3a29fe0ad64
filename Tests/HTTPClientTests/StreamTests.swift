import LocalCluster
import TestSupport
import Testing

@testable import HTTPClient

@Suite(.ownThreads) struct StreamTests {
    @Test func linesArriveWhileResponseStaysOpen() async throws {
        let server = LoopbackServer { _ in .stream(piece: Array("{\"a\":1}\n{\"b\"".utf8), count: 2, staysOpen: true) }
        defer { server.stop() }
        let client = Client()
        let response = try await client.stream(Request(server.url))
        #expect(response.status == 200 && response.headers["transfer-encoding"] == "chunked")
        var lines: [String] = []
        for try await line in response.body.lines(bytesMax: 100) {
            lines.append(String(decoding: line, as: UTF8.self))
            if lines.count == 2 { break }
        }
        #expect(lines == ["{\"a\":1}", "{\"b\"{\"a\":1}"])
    }

    @Test func slowReaderAppliesBackpressureAndLosesNothing() async throws {
        let (piece, count) = ([UInt8](0...255) + [UInt8](repeating: 7, count: 65_280), 512)
        let server = LoopbackServer { $0.path == "/stream" ? .stream(piece: piece, count: count) : .answer() }
        defer { server.stop() }
        var configuration = Client.Configuration()
        configuration.streamBufferBytesMax = 128 * 1024
        let client = Client(configuration: configuration)
        let response = try await client.stream(Request(server.url + "/stream"))
        // Other transfers of the same client continue meanwhile.
        for _ in 0..<300 { _ = try await client.send(Request(server.url)) }
        #expect(server.streamedByteCount < 16 * 1024 * 1024)
        var received = 0
        for try await chunk in response.body {
            for (offset, byte) in zip(received..., chunk.prefix(300)) where offset % piece.count < 300 {
                try #require(byte == piece[offset % piece.count])
            }
            received += chunk.count
        }
        #expect(received == piece.count * count)
    }

    @Test func streamEndsWithItsResponse() async throws {
        let server = LoopbackServer { _ in .stream(piece: Array("last".utf8), count: 1) }
        defer { server.stop() }
        let client = Client()
        var lines: [[UInt8]] = []
        for try await line in try await client.stream(Request(server.url)).body.lines(bytesMax: 100) {
            lines.append(line)
        }
        #expect(lines == [Array("last".utf8)])
    }

    @Test func releasingTheBodyClosesTheTransfer() async throws {
        let server = LoopbackServer { _ in .stream(piece: [1], count: 1, staysOpen: true) }
        defer { server.stop() }
        let client = Client()
        _ = try await client.stream(Request(server.url)).status
        #expect(try await eventually { server.openCount == 0 && server.requests.count == 1 })
    }

    @Test func cancellingTheReaderClosesTheTransfer() async throws {
        let server = LoopbackServer { _ in .stream(piece: [1], count: 1, staysOpen: true) }
        defer { server.stop() }
        let client = Client()
        let task = Task {
            for try await _ in try await client.stream(Request(server.url)).body {}
        }
        #expect(try await eventually { server.streamedByteCount == 1 })
        task.cancel()
        #expect(await #expect(throws: HTTPError.self) { try await task.value }?.isCancelled == true)
        #expect(try await eventually { server.openCount == 0 })
    }

    @Test func silentStreamFailsAfterIdleTimeout() async throws {
        let server = LoopbackServer { _ in .stream(piece: [1], count: 1, staysOpen: true) }
        defer { server.stop() }
        let client = Client()
        let error = await #expect(throws: HTTPError.self) {
            for try await _ in try await client.stream(Request(server.url), idleMax: .milliseconds(200)).body {}
        }
        #expect(error?.isTimeout == true)
    }

    @Test func overlongLineFails() async throws {
        let server = LoopbackServer { _ in .stream(piece: [UInt8](repeating: 65, count: 200), count: 1) }
        defer { server.stop() }
        let client = Client()
        let response = try await client.stream(Request(server.url))
        let error = await #expect(throws: HTTPError.self) { for try await _ in response.body.lines(bytesMax: 100) {} }
        #expect(error?.isResponseTooLarge == true)
    }

    @Test func unreachableStreamFails() async throws {
        let client = Client()
        let request = Request("http://127.0.0.1:\(LoopbackServer.freePort())")
        #expect(await #expect(throws: HTTPError.self) { try await client.stream(request) }?.outcome == .notSent)
    }
}
