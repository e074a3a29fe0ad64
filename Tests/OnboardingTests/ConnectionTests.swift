import Foundation
import TestSupport
import Testing

/// Onboarding's connections end with their response, which is one.
@Suite(.ownThreads) struct ConnectionTests {
    @Test func eachConnectionGetsOneResponse() async throws {
        let targets = [
            "/register_device", "/v1/token", "/sessions/\(UUID().uuidString.lowercased())", "/auth_callback",
            "/auth_callback?code=1&state=2", "/auth_confirm",
        ]
        try await withOnboarding { fixture in
            let connections = KeptConnections(port: fixture.ports[0])
            #expect(
                await connections.faults(of: targets, fields: [["Content-Type: application/json"], []]) == [])
        }
    }
}
