import Essentials
import Model
import Synchronization
import TestSupport
import Testing

@testable import HTTPClient

@Suite(.ownThreads) struct ClientTests {
    let client = Client()

    @Test func requestAndResponseRoundTrip() async throws {
        let server = LoopbackServer { request in
            .answer(status: 201, headers: ["X-One: a", "x-one:  b "], body: Array(request.body.reversed()))
        }
        defer { server.stop() }
        let request = Request(
            "PUT", server.url + "/a?b=c", headers: [("X-Name", "välue"), ("X-Empty", "")], body: [1, 2, 0, 3])
        let response = try await client.send(request)
        #expect(response.status == 201)
        #expect(response.body == [3, 0, 2, 1])
        #expect(response.headers["X-ONE"] == "a")
        #expect(response.headers.filter { $0.name.lowercased() == "x-one" }.map(\.value) == ["a", "b"])
        #expect(response.headers["x-two"] == nil)
        let received = try #require(server.requests.first)
        #expect(received.method == "PUT" && received.path == "/a?b=c")
        #expect(received.header("x-name") == "välue" && received.header("x-empty") == "")
        #expect(received.header("content-type") == nil && received.header("expect") == nil)
    }

    @Test(arguments: ["GET", "HEAD", "POST", "DELETE", "PATCH", "GET"]) func handleIsReusedForAnyMethod(
        method: String
    ) async throws {
        let server = LoopbackServer { _ in .answer() }
        defer { server.stop() }
        let body: [UInt8]? = method == "PATCH" ? [7] : nil
        for name in ["POST", method, "GET"] {
            _ = try await client.send(Request(name, server.url, body: name == method ? body : nil))
        }
        #expect(server.requests.map(\.method) == ["POST", method, "GET"])
        #expect(server.requests.map(\.body) == [[], body ?? [], []])
    }

    /// For example after a wait for a connection or a suspended process: another writer may have taken over.
    @Test func requestAfterItsDeadlineIsNotSent() async throws {
        let server = LoopbackServer { _ in .answer() }
        defer { server.stop() }
        let late = Request("POST", server.url + "/late", sendBefore: .now)
        let error = await #expect(throws: HTTPError.self) { _ = try await client.send(late) }
        #expect(error?.missedSendDeadline == true && error?.outcome == .notSent && error?.isCancelled == false)
        // The connection and the handle can be reused.
        let inTime = Request("POST", server.url + "/in-time", sendBefore: .now + .seconds(600))
        #expect(try await client.send(inTime).status == 200)
        #expect(server.requests.map(\.path) == ["/in-time"])
    }

    @Test func requestOfTraceHasTraceparent() async throws {
        let server = LoopbackServer { _ in .answer() }
        defer { server.stop() }
        let trace = try #require(TraceContext("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"))
        try await TraceContext.$current.withValue(trace) { _ = try await client.send(Request(server.url)) }
        _ = try await client.send(Request(server.url))
        #expect(server.requests.map { $0.header("traceparent") } == [trace.text, nil])
    }

    @Test func sequentialRequestsReuseOneConnection() async throws {
        let server = LoopbackServer { _ in .answer() }
        defer { server.stop() }
        for _ in 0..<20 { _ = try await client.send(Request(server.url)) }
        #expect(server.connectionCount == 1)
    }

    @Test func concurrentRequestsShareLimitedConnections() async throws {
        let server = LoopbackServer { .answer(body: Array($0.path.utf8)) }
        defer { server.stop() }
        var configuration = Client.Configuration()
        configuration.connectionsPerHostMax = 16
        let client = Client(configuration: configuration)
        try await withThrowingTaskGroup(of: Bool.self) { group in
            for number in 0..<200 {
                group.addTask {
                    let response = try await client.send(Request(server.url + "/\(number)"))
                    return response.body == Array("/\(number)".utf8)
                }
            }
            for try await isRight in group { #expect(isRight) }
        }
        #expect(server.connectionCount <= 16)
    }

    @Test func redirectIsReturnedAsResponse() async throws {
        let server = LoopbackServer { _ in .answer(status: 302, headers: ["Location: /elsewhere"]) }
        defer { server.stop() }
        let response = try await client.send(Request(server.url))
        #expect(response.status == 302 && response.headers["location"] == "/elsewhere")
        #expect(server.requests.count == 1)
    }

    @Test func eachSessionHasItsOwnCookies() async throws {
        let server = LoopbackServer { request in
            request.path == "/login"
                ? .answer(headers: ["Set-Cookie: SID=\(request.header("x-user") ?? ""); path=/; HttpOnly"])
                : .answer(body: Array((request.header("cookie") ?? "none").utf8))
        }
        defer { server.stop() }
        let (ana, bo) = (Session(), Session())
        for (session, name) in [(ana, "ana"), (bo, "bo")] {
            _ = try await client.send(Request(server.url + "/login", headers: [("X-User", name)], session: session))
        }
        _ = try await client.send(Request(server.url + "/login", headers: [("X-User", "nobody")]))
        for (session, cookie) in [(ana, "SID=ana"), (bo, "SID=bo"), (nil, "none"), (Session(), "none")] {
            let response = try await client.send(Request(server.url, session: session))
            #expect(String(decoding: response.body, as: UTF8.self) == cookie)
        }
    }
}

@Suite(.ownThreads) struct FailureTests {
    let client = Client()

    func failure(of request: Request) async -> HTTPError? {
        await #expect(throws: HTTPError.self) { try await client.send(request) }
    }

    @Test func refusedConnectionIsNotSent() async throws {
        let error = await failure(of: Request("POST", "http://127.0.0.1:\(LoopbackServer.freePort())", body: [1]))
        #expect(error?.outcome == .notSent)
    }

    @Test func unknownHostIsNotSent() async throws {
        #expect(await failure(of: Request("http://no-such-host.invalid/"))?.outcome == .notSent)
    }

    @Test func connectionLostAfterRequestIsMaybeSent() async throws {
        let server = LoopbackServer { _ in .hangUp }
        defer { server.stop() }
        let error = await failure(of: Request("POST", server.url, body: [1]))
        #expect(error?.outcome == .maybeSent && error?.status == nil)
        #expect(server.requests.count == 1)
    }

    /// libcurl itself resends when a reused connection is closed: a write could then happen twice.
    @Test(arguments: ["POST", "DELETE", "PUT"]) func unsafeRequestIsNotRetriedOnReusedConnection(
        method: String
    ) async throws {
        let server = LoopbackServer { $0.path == "/first" ? .answer() : .hangUp }
        defer { server.stop() }
        _ = try await client.send(Request(server.url + "/first"))
        let error = await failure(of: Request(method, server.url + "/second", body: method == "DELETE" ? nil : [1]))
        #expect(error?.outcome == .maybeSent)
        #expect(server.requests.map(\.path) == ["/first", "/second"])
    }

    @Test func missingResponseTimesOutAsMaybeSent() async throws {
        let server = LoopbackServer { _ in .silence }
        defer { server.stop() }
        // On a busy machine, sending may not start within a short time.
        var (totalMax, error) = (Duration.milliseconds(50), HTTPError?.none)
        repeat {
            error = await failure(of: Request(server.url, totalMax: totalMax))
            #expect(error?.isTimeout == true)
            totalMax = totalMax * 2
        } while error?.outcome == .notSent && totalMax < patienceMax
        #expect(error?.outcome == .maybeSent)
        #expect(try await eventually { server.openCount == 0 })
    }

    @Test func timeoutWhileWaitingForConnectionIsNotSent() async throws {
        let server = LoopbackServer { _ in .silence }
        defer { server.stop() }
        var configuration = Client.Configuration()
        configuration.connectionsPerHostMax = 1
        let client = Client(configuration: configuration)
        let isFirstDone = Mutex(false)
        async let first: Void = {
            _ = try? await client.send(Request(server.url, totalMax: patienceMax))
            isFirstDone.withLock { $0 = true }
        }()
        #expect(try await eventually { server.requests.count == 1 })
        let error = await #expect(throws: HTTPError.self) {
            try await client.send(Request("POST", server.url, body: [1], totalMax: .milliseconds(50)))
        }
        #expect(error?.outcome == .notSent && error?.isTimeout == true)
        #expect(!isFirstDone.withLock { $0 }, "it waits no longer than its own timeout")
        client.shutDown()
        await first
        #expect(server.requests.count == 1)
    }

    @Test func oversizedResponseFails() async throws {
        let server = LoopbackServer { _ in .answer(body: .init(repeating: 65, count: 1001)) }
        defer { server.stop() }
        let error = await failure(of: Request(server.url, responseBytesMax: 1000))
        #expect(error?.isResponseTooLarge == true && error?.status == 200)
        #expect(try await client.send(Request(server.url, responseBytesMax: 1001)).body.count == 1001)
    }

    @Test func oversizedHeadFails() async throws {
        let header = "X-Long: " + String(repeating: "a", count: 40_000)
        let server = LoopbackServer { _ in .answer(headers: [header, header]) }
        defer { server.stop() }
        #expect(await failure(of: Request(server.url))?.isResponseTooLarge == true)
    }

    @Test(arguments: [
        Request("file:///etc/passwd"), Request("http://127.0.0.1/a b"), Request("ftp://127.0.0.1/"),
        Request("http://127.0.0.1/", headers: [("A", "b\r\nC: d")]),
        Request("http://127.0.0.1/", headers: [("A:", "b")]),
        Request("GET / HTTP/1.1\r\n", "http://127.0.0.1/"),
    ]) func malformedRequestIsRejectedBeforeSending(request: Request) async throws {
        #expect(await failure(of: request)?.outcome == .notSent)
    }

    @Test func cancellingTheTaskClosesTheTransfer() async throws {
        let server = LoopbackServer { _ in .silence }
        defer { server.stop() }
        let client = client
        let task = Task { try await client.send(Request(server.url)) }
        #expect(try await eventually { server.requests.count == 1 })
        task.cancel()
        let error = await #expect(throws: HTTPError.self) { try await task.value }
        #expect(error?.isCancelled == true && error?.outcome == .maybeSent)
        #expect(try await eventually { server.openCount == 0 })
    }

    @Test func shutdownFailsRunningAndLaterRequests() async throws {
        let server = LoopbackServer { _ in .silence }
        defer { server.stop() }
        let client = Client()
        let task = Task { try await client.send(Request(server.url)) }
        #expect(try await eventually { server.requests.count == 1 })
        client.shutDown()
        #expect(await #expect(throws: HTTPError.self) { try await task.value }?.outcome == .maybeSent)
        #expect(
            await #expect(throws: HTTPError.self) { try await client.send(Request(server.url)) }?.outcome == .notSent)
    }
}

/// Waits until `condition` holds.
func eventually(_ condition: () -> Bool) async throws -> Bool {
    let deadline = ContinuousClock.now + patienceMax
    while !condition() {
        guard .now < deadline else { return false }
        try await Task.sleep(for: .milliseconds(2))
    }
    return true
}
