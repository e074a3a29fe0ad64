import Hummingbird
import TestSupport
import Testing

@testable import HTTPServer
@testable import ServiceRuntime
@testable import ServiceSettings

/// Clients that send nothing or single bytes, alongside clients that send requests.
extension EdgeTests {
    @Test func connectionsPerNetworkAreLimited() async throws {
        let limits = HTTPLimits(
            networkConnectionCountMax: 20, idleMax: .seconds(300), headMax: .seconds(300), bodyMax: .seconds(300))
        try await withServer(limits: limits) { port in
            let faults = try await SlowClients(port: port).limitFaults(20, path: "/page")
            #expect(faults == [])
        }
    }

    @Test func silentConnectionsDoNotBlockRequests() async throws {
        let limits = HTTPLimits(idleMax: .seconds(300), headMax: .seconds(300), bodyMax: .seconds(300))
        try await withServer(limits: limits) { port in
            try await withOwnThread {
                var silent: [Silent] = []
                while silent.count < 200 { silent.append(try Silent(port: port)) }
                for _ in 0..<10 {
                    var connection = try RawConnection(port: port)
                    connection.send("GET /page HTTP/1.1\r\nHost: localhost\r\n\r\n")
                    try expect(200, "GET", &connection)
                }
                #expect(silent.count == 200)
            }
        }
    }

    @Test func adminServersHaveDeadlinesAndLimits() async throws {
        let limits = AdminServer.limits
        #expect(limits.headMax <= .seconds(15) && limits.bodyMax <= .seconds(15) && limits.idleMax <= .seconds(75))
        #expect(limits.networkConnectionCountMax <= limits.connectionCountMax / 2)
        try await withAdminServer { port in
            let clients = SlowClients(port: port)
            let faults = try await clients.limitFaults(limits.networkConnectionCountMax, path: "/health/live")
            #expect(faults == [])
            let survivors = try await clients.survivors(posting: "/metrics")
            #expect(survivors == [])
        }
    }

    @Test(arguments: 0...1) func slowConnectionsAreClosed(kind: Int) async throws {
        let limits = HTTPLimits(idleMax: .seconds(300), headMax: .seconds(2), bodyMax: .seconds(2))
        try await withServer(limits: limits, webSocket: Self.kinds[kind]) { port in
            let faults = try await SlowClients(port: port).survivors(posting: "/echo")
            #expect(faults == [])
        }
    }

    /// A response before the end of a body neither cancels nor extends the body's timeout.
    @Test(arguments: 0...1) func trickledBodyIsCutOffAfterEarlyResponse(kind: Int) async throws {
        let limits = HTTPLimits(
            bodyBytesMax: 1 << 16, idleMax: .seconds(300), headMax: .seconds(300), bodyMax: .seconds(2))
        let heads = [
            401: Self.postHead("/private", "Content-Length: 60000"),
            404: Self.postHead("/nothing", "Content-Length: 60000"),
            405: Self.postHead("/page", "Transfer-Encoding: chunked"),
            413: Self.postHead("/echo", "Content-Length: 100000"),
            429: Self.postHead("/limited", "Content-Length: 60000"),
        ]
        // A server with a WebSocket closes each connection after one response.
        let isPersistentOptions = Self.kinds[kind] == nil ? [false, true] : [false]
        try await withServer(
            limits: limits, webSocket: Self.kinds[kind],
            routes: { router in
                router.post("private") { _, _ -> Response in throw Problem(.unauthorized) }
                router.post("limited") { _, _ -> Response in throw Problem(.tooManyRequests) }
            }
        ) { port in
            try await withThrowingTaskGroup { group in
                for isPersistent in isPersistentOptions {
                    for (status, head) in heads {
                        group.addTask {
                            try await withOwnThread {
                                try expectCutOff(head, status, isPersistent: isPersistent, port: port)
                            }
                        }
                    }
                }
                try await group.waitForAll()
            }
        }
    }

    static func postHead(_ target: String, _ framing: String) -> String {
        "POST \(target) HTTP/1.1\r\nHost: localhost\r\n\(framing)\r\n\r\n"
    }

    @Test func proxiesDisableTheNetworkLimit() throws {
        func countMax(_ variables: [String: String]) throws -> Int {
            try HTTPLimits.networkConnectionCountMax(Configuration(Setting.edge, environment: variables))
        }
        #expect(try countMax([:]) == 2_000)
        #expect(try countMax(["FIELDPOST_HTTP_CONNECTIONS_NETWORK_MAX": "7"]) == 7)
        #expect(try countMax(["FIELDPOST_HTTP_CONNECTIONS_NETWORK_MAX": "0"]) == 0)
        #expect(try countMax(["FIELDPOST_HTTP_PROXIES": "1"]) == 0)
    }
}

/// Sends the body of a request slowly after its early response, and waits for the end of the connection.
/// - Parameter isPersistent: Whether another request with an early response precedes it.
private func expectCutOff(_ head: String, _ status: Int, isPersistent: Bool, port: Int) throws {
    var connection = try RawConnection(port: port)
    if isPersistent {
        connection.send(EdgeTests.postHead("/private", "Content-Length: 4"))
        try expect(401, "POST", &connection)
        connection.send("body")
    }
    connection.send(head)
    try expect(status, "POST", &connection)
    let isClosed = connection.waitForEnd(sending: head.contains("chunked") ? "1\r\n \r\n" : " ")
    #expect(isClosed, "\(status), isPersistentOptions: \(isPersistent)")
}

/// A connection whose client sends only the beginning of a head.
private final class Silent {
    private let connection: RawConnection

    init(port: Int) throws {
        connection = try RawConnection(port: port)
        connection.send("GET /page HT")
    }
}
