import Foundation
import TestSupport
import Testing

@testable import LagMonitor

@Suite(.ownThreads) struct ConsoleConnectionTests {
    @Test func eachRequestOfPersistentConnectionGetsOneResponse() async throws {
        let targets =
            ConsolePage.files.map { "\($0.path)" }.map { $0.hasPrefix("/") ? $0 : "/" + $0 } + [
                "/sign-in", "/callback", "/callback?code=1&state=2", "/api/session", "/api/overview", "/api/charts",
                "/api/environments", "/api/audit", "/api/sign-out", "/api/deferred", "/api/deferred/key",
                "/api/deferred/retry", "/api/deferred/retry-keys", "/api/deferred/discard", "/api/realms",
                "/api/realm", "/api/trace", "/api/topic", "/api/topic/messages", "/api/back-ends",
            ]
        try await withConsole { fixture in
            let port = try #require(URL(string: fixture.url)?.port)
            #expect(await KeptConnections(port: port).faults(of: targets) == [])
        }
    }

    /// With the console's own limits.
    @Test func slowAndExcessConnectionsAreClosed() async throws {
        try await withConsole { fixture in
            let clients = SlowClients(port: try #require(URL(string: fixture.url)?.port))
            #expect(try await clients.limitFaults(250, path: "/") == [])
            #expect(try await clients.survivors(posting: "/api/deferred/retry") == [])
        }
    }
}
