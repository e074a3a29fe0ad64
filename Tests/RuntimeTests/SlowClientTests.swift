import TestSupport
import Testing

@testable import Runtime

/// Clients that send nothing, or a byte now and then, alongside those that send requests.
extension EdgeTests {
    private static let page = request("/page")

    private static func request(_ path: String) -> String { "GET \(path) HTTP/1.1\r\nHost: localhost\r\n\r\n" }

    @Test func aNetworkHasItsLimitOfConnections() async throws {
        let limits = HTTPLimits(
            networkConnectionCountMax: 20, idleMax: .seconds(300), headMax: .seconds(300), bodyMax: .seconds(300))
        try await withServer(limits: limits) { port in
            try await Self.expectLimit(20, "/page", port: port)
        }
    }

    /// Holds as many connections as a network may have.
    private static func expectLimit(_ countMax: Int, _ path: String, port: Int) async throws {
        try await withOwnThread {
            var held: [Held] = []
            while held.count < countMax { held.append(try Held(path, port: port)) }
            var refused = try RawConnection(port: port)
            refused.send(request(path))
            expectEnd(&refused)
            // Another network has its own.
            var other = try RawConnection(port: port, from: "127.0.0.2")
            other.send(request(path))
            try expect(200, "GET", &other)
            // There is room again when one ends.
            held.removeLast()
            let deadline = ContinuousClock.now + patienceMax
            var status: Int?
            while status == nil, ContinuousClock.now < deadline {
                var next = try RawConnection(port: port)
                next.send(request(path))
                status = try? next.response(to: "GET").status
            }
            #expect(status == 200)
        }
    }

    @Test func requestsAreAnsweredBesideSilentConnections() async throws {
        let limits = HTTPLimits(idleMax: .seconds(300), headMax: .seconds(300), bodyMax: .seconds(300))
        try await withServer(limits: limits) { port in
            try await withOwnThread {
                var silent: [Held] = []
                while silent.count < 200 { silent.append(try Held(nil, port: port)) }
                for _ in 0..<10 {
                    var connection = try RawConnection(port: port)
                    connection.send(Self.page)
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
            try await Self.expectLimit(limits.networkConnectionCountMax, "/health/live", port: port)
        }
    }

    @Test func proxiesHaveNoLimitOfTheirNetwork() throws {
        func countMax(_ variables: [String: String]) throws -> Int {
            try HTTPLimits.networkConnectionCountMax(Configuration(Setting.edge, environment: variables))
        }
        #expect(try countMax([:]) == 2_000)
        #expect(try countMax(["FIELDPOST_HTTP_CONNECTIONS_NETWORK_MAX": "7"]) == 7)
        #expect(try countMax(["FIELDPOST_HTTP_CONNECTIONS_NETWORK_MAX": "0"]) == 0)
        #expect(try countMax(["FIELDPOST_HTTP_PROXIES": "1"]) == 0)
    }
}

/// A connection whose client sends the beginning of a head, and nothing more.
private final class Held {
    private var connection: RawConnection

    /// - Parameter path: Is asked for first, so that the server has counted the connection.
    init(_ path: String?, port: Int) throws {
        connection = try RawConnection(port: port)
        if let path {
            connection.send("GET \(path) HTTP/1.1\r\nHost: localhost\r\n\r\n")
            _ = try connection.response(to: "GET")
        }
        connection.send("GET /page HT")
    }
}
