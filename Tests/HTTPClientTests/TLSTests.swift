import TestSupport
import Testing

@testable import HTTPClient

/// Against `openssl s_server`, whose certificate only its own file vouches for.
@Suite(.ownThreads) struct TLSTests {
    @Test func aServerIsTrustedOnlyThroughItsAuthorityAndForItsName() async throws {
        let server = try TLSServer()
        var configuration = Client.Configuration()
        let stranger = Client(configuration: configuration)
        let request = Request("POST", "https://127.0.0.1:\(server.port)/", body: [1])
        let error = await #expect(throws: HTTPError.self) { try await stranger.send(request) }
        #expect(error?.outcome == .notSent)

        configuration.caFile = server.certificateFile
        let friend = Client(configuration: configuration)
        #expect(try await friend.send(Request("https://127.0.0.1:\(server.port)/")).status == 200)
        let otherName = Request("https://localhost:\(server.port)/")
        #expect(await #expect(throws: HTTPError.self) { try await friend.send(otherName) }?.outcome == .notSent)
    }
}
