import DeviceClient
import Essentials
import Foundation
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
