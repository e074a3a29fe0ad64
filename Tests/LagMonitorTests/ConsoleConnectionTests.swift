import Foundation
import TestSupport
import Testing

@testable import LagMonitor

@Suite(.ownThreads) struct ConsoleConnectionTests {
    @Test func eachRequestOfAKeptConnectionGetsOneResponse() async throws {
        let targets =
            ConsolePage.files.map { "\($0.path)" }.map { $0.hasPrefix("/") ? $0 : "/" + $0 } + [
                "/sign-in", "/callback", "/callback?code=1&state=2", "/api/session", "/api/overview", "/api/charts",
                "/api/environments", "/api/audit", "/api/sign-out", "/api/parked", "/api/parked/key",
                "/api/parked/retry", "/api/parked/discard", "/api/realms", "/api/realm", "/api/trace",
            ]
        try await withConsole { fixture in
            let port = try #require(URL(string: fixture.url)?.port)
            #expect(await KeptConnections(port: port).faults(of: targets) == [])
        }
    }

    /// With the deadlines and the limit that a console has.
    @Test func slowAndExcessConnectionsAreClosed() async throws {
        try await withConsole { fixture in
            let clients = SlowClients(port: try #require(URL(string: fixture.url)?.port))
            #expect(try await clients.limitFaults(250, path: "/") == [])
            #expect(try await clients.survivors(posting: "/api/parked/retry") == [])
        }
    }
}
