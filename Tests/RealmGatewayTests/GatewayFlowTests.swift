import Essentials
import Foundation
import HTTPClient
import Model
import TestSupport
import Testing

@testable import RealmGateway

@Suite(.ownThreads) struct GatewayFlowTests {
    @Test func changeReachesAnotherDevice() async throws {
        try await withGateway { fixture in
            let phone = try await GatewayDevice(fixture, "ana@example.com")
            let tablet = try await GatewayDevice(fixture, "ana@example.com")
            let entry = UUID()
            let put = await phone.mutation("put", entry, "{\"text\":\"survey\",\"durationSeconds\":3600}")
            let response = try await phone.send([put])
            #expect(response.status == 200)
            #expect(response.results.first?.hasPrefix("accepted ") == true)
            #expect(response.json["expectedSequence"] as? Int == 2)

            try await tablet.sync()
            let realm = await tablet.realm
            let key = "TimeEntry/\(entry.uuidString.lowercased())"
            #expect(
                await tablet.shown(realm)[key].map(GatewayFixture.withoutLog)
                    == "{\"durationSeconds\":3600,\"status\":\"draft\",\"text\":\"survey\"}")
            #expect(await tablet.resets == [realm])
            #expect(await tablet.checkpointCount == 1)
            #expect(response.results == ["accepted \(await tablet.copy[realm]?[key]?.position ?? 0)"])

            let following = Task { try await tablet.follow() }
            defer { following.cancel() }
            try await tablet.wait("live") { $0.checkpointCount >= 2 }
            let patch = await phone.mutation("patch", entry, "{\"text\":\"roof\"}")
            #expect(try await phone.send([patch]).status == 200)
            try await tablet.wait("the patch") { $0.shown(realm)[key]?.contains("roof") == true }
            let delete = await phone.mutation("delete", entry)
            #expect(try await phone.send([delete]).results.first?.hasPrefix("accepted") == true)
            try await tablet.wait("the tombstone") { $0.shown(realm)[key] == nil }
            try await tablet.wait("the checkpoint") { $0.checkpointCount >= 4 }
            #expect(await tablet.repeats == [])
            #expect(await tablet.resets.count == 1)
        }
    }

    /// A device gets the id of its `Person`, and may write the objects with that id; an integration is not a person.
    @Test func realmsListNamesTheCallersPerson() async throws {
        try await withGateway { fixture in
            func realms(_ device: GatewayDevice) async throws -> [String: Any] {
                GatewayResponse(try await fixture.client.send(device.request("GET", "/v1/realms"))).json
            }
            let ana = try await fixture.device("ana@example.com")
            let ben = try await fixture.device("ben@example.com", role: .manager)
            let books = GatewayDevice(fixture, bearer: try fixture.addIntegration("books"))
            for device in [ana, ben] {
                let text = try #require(try await realms(device)["person"] as? String)
                let me = try #require(UUID(uuidString: text))
                #expect(try fixture.person(device.email) == me && text == me.text)
                let rename = await device.mutation("patch", me, "{\"name\":\"Me\"}", kind: "Person", in: "/common")
                #expect(try await device.send([rename]).results.first?.hasPrefix("accepted") == true)
            }
            let response = try await realms(books)
            #expect(response["person"] == nil && response["realms"] is [Any])
        }
    }

    /// A first login creates a person in `/common`: all live devices get a checkpoint for it, unprompted.
    @Test func firstLoginReachesLiveDevices() async throws {
        try await withGateway { fixture in
            let phones = [
                try await GatewayDevice(fixture, "ana@example.com"),
                try await GatewayDevice(fixture, "ben@example.com"),
            ]
            let following = Task { try await phones[0].follow() }
            defer { following.cancel() }
            try await phones[0].wait("live") { $0.checkpointCount >= 1 }
            try await phones[1].sync()
            try await phones[0].wait("the other") { $0.shown("/common").count == 2 && $0.checkpointCount >= 2 }
            for phone in phones { try await phone.wait("live") { $0.checkpointCount >= 1 } }
            #expect(await phones[0].openRealms == ["/common", await phones[0].realm])
        }
    }
}
