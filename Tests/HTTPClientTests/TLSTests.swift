import Foundation
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

    /// libcurl stores authorities for 24 hours, but not with a directory of authorities, which Debian's has.
    @Test func renewedFileOfAuthoritiesIsReadByTheNextConnection() async throws {
        let (server, other) = (try TLSServer(), try TLSServer())
        var configuration = Client.Configuration()
        configuration.caFile = other.certificateFile
        let client = Client(configuration: configuration)
        let request = Request("https://127.0.0.1:\(server.port)/")
        #expect(await #expect(throws: HTTPError.self) { try await client.send(request) }?.outcome == .notSent)
        try Data(contentsOf: URL(filePath: server.certificateFile)).write(to: URL(filePath: other.certificateFile))
        #expect(try await client.send(request).status == 200)
        client.shutDown()
    }
}
