import Foundation
import TestSupport
import Testing

@testable import Onboarding

/// Each connection to onboarding gets one response and is then closed.
@Suite(.ownThreads) struct ConnectionTests {
    @Test func eachConnectionGetsOneResponse() async throws {
        let targets = [
            "/register_device", "/v1/token", "/v1/logout", "/sessions/\(UUID().uuidString.lowercased())",
            "/auth_callback", "/auth_callback?code=1&state=2", "/auth_confirm",
        ]
        try await withOnboarding { fixture in
            let connections = KeptConnections(port: fixture.ports[0])
            #expect(
                await connections.faults(of: targets, fields: [["Content-Type: application/json"], []]) == [])
        }
    }

    @Test func slowConnectionsAreClosed() async throws {
        var limits = OnboardingLimits.quick
        limits.requestMax = .seconds(2)
        try await withOnboarding(limits: limits) { fixture in
            let fields = ["Content-Type: application/json"]
            let clients = SlowClients(port: fixture.ports[0])
            let faults = try await clients.survivors(posting: "/register_device", fields: fields)
            #expect(faults == [])
        }
    }

    @Test func connectionsPerNetworkAreLimited() async throws {
        // A connection closes after its response, but not after the interim response that requests the body.
        let held =
            "POST /register_device HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            + "Expect: 100-continue\r\nContent-Length: 2\r\n\r\n"
        try await withOnboarding(networkConnectionCountMax: 20) { fixture in
            let clients = SlowClients(port: fixture.ports[0])
            let faults = try await clients.limitFaults(20, path: "/auth_callback", holding: held)
            #expect(faults == [])
        }
    }
}
