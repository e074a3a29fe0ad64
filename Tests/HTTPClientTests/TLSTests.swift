import TestSupport
import Testing

@testable import HTTPClient

/// Against `openssl s_server` with a self-signed certificate.
@Suite(.ownThreads) struct TLSTests {
    @Test func serverIsTrustedOnlyByAuthorityAndName() async throws {
        let server = try TLSServer()
        var configuration = Client.Configuration()
        let untrusting = Client(configuration: configuration)
        let request = Request("POST", "https://127.0.0.1:\(server.port)/", body: [1])
        let error = await #expect(throws: HTTPError.self) { try await untrusting.send(request) }
        #expect(error?.outcome == .notSent)

        configuration.caFile = server.certificateFile
        let trusting = Client(configuration: configuration)
        #expect(try await trusting.send(Request("https://127.0.0.1:\(server.port)/")).status == 200)
        let otherName = Request("https://localhost:\(server.port)/")
        #expect(await #expect(throws: HTTPError.self) { try await trusting.send(otherName) }?.outcome == .notSent)
    }
}
