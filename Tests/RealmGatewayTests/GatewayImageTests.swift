import DeviceClient
import Essentials
import Foundation
import HTTPClient
import Model
import TestSupport
import Testing

@testable import RealmGateway
@testable import Workbench

/// An image from one device to another, through the client library.
@Suite(.ownThreads) struct GatewayImageTests {
    @Test func personsPictureReachesOtherDevices() async throws {
        try await withGateway { fixture in
            let gateway = GatewayClient(client: fixture.client, url: fixture.url(""))
            let ana = try await fixture.device("ana@example.com")
            let bo = try await fixture.device("bo@example.com")
            let (me, id) = (try fixture.person("ana@example.com"), UUID())
            let bytes = TestImage.make(.webp, count: GatewayClient.imageBytesMax)
            for _ in 1...2 { try await gateway.putImage(id, bytes, token: ana.token) }
            #expect(try await gateway.image(id, token: ana.token) == bytes)
            #expect(try await gateway.image(id, token: bo.token) == nil, "no object refers to it yet")

            let name = await ana.mutation("patch", me, "{\"avatar\":\"\(id.text)\"}", kind: "Person", in: "/common")
            #expect(try await ana.send([name]).results[0].hasPrefix("accepted"))
            try await bo.sync()
            #expect(await ImageNeeds(of: bo.phone, held: []).missing == [id])
            #expect(try await gateway.image(id, token: bo.token) == bytes)
            let needs = await ImageNeeds(of: bo.phone, held: [id])
            #expect(needs.missing.isEmpty && needs.unneeded.isEmpty)
        }
    }

    @Test func rejectionIsReported() async throws {
        try await withGateway { fixture in
            let gateway = GatewayClient(client: fixture.client, url: fixture.url(""))
            let token = try await fixture.device("ana@example.com").token
            let (id, bytes) = (UUID(), TestImage.make())
            try await gateway.putImage(id, bytes, token: token)
            for (body, status) in [
                (Array("GIF89a picture".utf8), 415), (TestImage.make(count: GatewayClient.imageBytesMax + 1), 413),
                (TestImage.make(.png, "another"), 409),
            ] {
                let refusal = await #expect(throws: GatewayClient.UnexpectedResponse.self) {
                    try await gateway.putImage(id, body, token: token)
                }
                #expect(refusal?.status == status)
            }
            let refusal = await #expect(throws: GatewayClient.UnexpectedResponse.self) {
                _ = try await gateway.image(id, token: "nobody's")
            }
            #expect(refusal?.status == 401)
            #expect(try await gateway.image(UUID(), token: token) == nil)
        }
    }
}

extension GatewayClient {
    /// Maximum size of an image at the gateway, in bytes.
    fileprivate static let imageBytesMax = 1_048_576

    private func request(_ method: String, _ id: UUID, _ bytes: [UInt8]?, token: String) async throws -> Response {
        var headers: [(name: String, value: String)] = [("Authorization", "Bearer \(token)")]
        // The gateway determines the image's type by its bytes.
        if bytes != nil { headers.append(("Content-Type", "application/octet-stream")) }
        return try await client.send(
            Request(
                method, url + "/v1/blobs/\(id.text)", headers: headers, body: bytes,
                responseBytesMax: Self.imageBytesMax))
    }

    /// Sends an image, under an id that no object names yet. To send it again is harmless.
    fileprivate func putImage(_ id: UUID, _ bytes: [UInt8], token: String) async throws {
        let response = try await request("PUT", id, bytes, token: token)
        guard response.status == 201 || response.status == 204 else { throw UnexpectedResponse(response) }
    }

    /// - Returns: The image's bytes; `nil` when there is none, or none that the token may read.
    fileprivate func image(_ id: UUID, token: String) async throws -> [UInt8]? {
        let response = try await request("GET", id, nil, token: token)
        if response.status == 404 { return nil }
        guard response.status == 200 else { throw UnexpectedResponse(response) }
        return response.body
    }
}
