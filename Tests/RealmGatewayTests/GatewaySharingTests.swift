import Essentials
import Foundation
import HTTPClient
import Model
import TestSupport
import Testing

@testable import RealmGateway

/// Forbidden writes of sharing, by the scenarios of SyncOddly's tests with invalid documents; the numbers are those of
/// its documented tests. The effects of permitted writes are in the tests of `share-fan-out`.
@Suite(.ownThreads) struct GatewaySharingTests {
    private func sharing(
        _ item: UUID, with recipient: UUID, by device: GatewayDevice, also: String = "", op: String = "put"
    ) async -> String {
        let fields = "{\"kind\":\"Note\",\"item\":\"\(item)\",\"recipient\":\"\(recipient)\"\(also)}"
        return await device.mutation(
            op, SharedItem.id(of: item, with: recipient), fields, kind: "SharedItem", in: device.realm)
    }

    /// 2, and SharedWithSelfIsInvalid. Not for integrations either, as far as they can be distinguished.
    @Test func recipientMustBeAnotherPerson() async throws {
        try await withGateway { fixture in
            let (ana, ben) = (
                try await fixture.device("ana@example.com"), try await fixture.device("ben@example.com")
            )
            let (me, other) = (try fixture.person("ana@example.com"), try fixture.person("ben@example.com"))
            let books = GatewayDevice(fixture, bearer: try fixture.addIntegration("books"))
            let note = UUID()
            let results = try await ana.send([
                await sharing(note, with: UUID(), by: ana), await sharing(note, with: me, by: ana),
                await sharing(note, with: other, by: ana),
                // A server's field, and a change of an immutable one.
                await sharing(note, with: other, by: ana, also: ",\"problem\":\"none\""),
                await sharing(note, with: other, by: ana, op: "patch"),
                await ana.mutation("delete", SharedItem.id(of: note, with: other), kind: "SharedItem", in: ana.realm),
                await sharing(note, with: other, by: ana),
            ]).results.map { $0.prefix { $0 != " " } }
            #expect(
                results == [
                    "invalid-field", "invalid-field", "accepted", "field-not-allowed", "operation-not-allowed",
                    "accepted", "accepted",
                ])
            let fields = "{\"kind\":\"Note\",\"item\":\"\(note)\",\"recipient\":\"\(note)\"}"
            let put = await books.mutation(
                "put", SharedItem.id(of: note, with: note), fields, kind: "SharedItem", in: ana.realm)
            #expect(try await books.send([put]).results == ["invalid-field"])
            // A person who existed at the start of the request counts; a deleted one does not.
            let person = await books.mutation("delete", other, kind: "Person", in: "/common")
            #expect(try await books.send([person]).results[0].hasPrefix("accepted"))
            #expect(try await ana.send([await sharing(UUID(), with: other, by: ana)]).results == ["invalid-field"])
            _ = ben
        }
    }

    /// 4 and 12: no caller may put a copy of any object.
    @Test func copiesCannotBePut() async throws {
        try await withGateway { fixture in
            let (ana, ben) = (
                try await fixture.device("ana@example.com"), try await fixture.device("ben@example.com")
            )
            let books = GatewayDevice(fixture, bearer: try fixture.addIntegration("books"))
            let ids = try ["ana", "ben"].map { try fixture.person("\($0)@example.com") }
            let share = Share.id(of: ids[0], with: ids[1])
            try fixture.makeShare(
                share, owner: ids[0], recipient: ids[1], emails: ["ana@example.com", "ben@example.com"])
            let path = RealmPath.share(share).description
            let appointment = "{\"when\":\"2015-03-30T08:00:00Z\",\"durationMinutes\":30,\"why\":\"extra\"}"
            let pair = "{\"owner\":\"\(ids[0])\",\"recipient\":\"\(ids[1])\"}"
            for device in [ana, ben, books] {
                let results = try await device.send([
                    await device.mutation("put", UUID(), "{\"title\":\"extra\"}", kind: "Note", in: path),
                    await device.mutation("put", UUID(), appointment, kind: "Appointment", in: path),
                    await device.mutation("put", share, pair, kind: "Share", in: path),
                    await device.mutation("put", share, pair, kind: "Share", in: ana.realm),
                ]).results
                #expect(
                    results.count == 4 && results.allSatisfy { $0.hasSuffix("-allowed") || $0.hasSuffix("permitted") })
            }
            #expect(try fixture.stored(path).count == 1)
        }
    }

    /// 8: one address is one person, so that no person exists twice.
    @Test func addressBelongsToOnePerson() async throws {
        try await withGateway { fixture in
            func status(_ email: String, _ subject: String) async throws -> Int {
                let token = try await fixture.keys.token(email, subject: subject)
                let request = Request(
                    fixture.url("/v1/realms"), headers: [("Authorization", "Bearer \(token)")])
                return GatewayResponse(try await fixture.client.send(request)).status
            }
            let statuses = [try await status("ana@example.com", "1"), try await status("Ana@example.com", "2")]
            #expect(statuses == [200, 403])
            #expect(try fixture.stored("/common").keys.filter { $0.hasPrefix("Person/") }.count == 1)
        }
    }

    /// ViewModelUpdatesPersonLookup: a person writes both in one request, with no address but their own.
    @Test func personAndLookupChangeTogether() async throws {
        try await withGateway { fixture in
            let ana = try await fixture.device("ana@example.com")
            let me = try fixture.person("ana@example.com")
            func lookup(_ name: String, _ email: String) async -> String {
                await ana.mutation(
                    "put", me, "{\"name\":\"\(name)\",\"email\":\"\(email)\"}", kind: "PersonLookup", in: "/common")
            }
            let results = try await ana.send([
                await lookup("A", "old@example.com"), await lookup("A", "ana@example.com"),
                await ana.mutation("patch", me, "{\"name\":\"Ana\"}", kind: "Person", in: "/common"),
                await lookup("Ana", "ana@example.com"),
            ]).results
            #expect(results[0] == "invalid-field" && results[1...].allSatisfy { $0.hasPrefix("accepted") })
            let common = try fixture.stored("/common")
            #expect(common["PersonLookup/\(me.text)"] == "{\"email\":\"ana@example.com\",\"name\":\"Ana\"}")
            #expect(common["Person/\(me.text)"]?.contains("\"Ana\"") == true)
        }
    }

    /// A changed address at the provider reaches the person's lookup with the next token. Their realm keeps the address
    /// of the first login, and they do not get another person's address, or one outside the organisation.
    @Test func changedAddressReachesTheLookup() async throws {
        try await withGateway { fixture in
            let first = try await fixture.device("ana@example.com")
            _ = try await fixture.device("ben@example.com")
            let me = try fixture.person("ana@example.com")
            /// Ana, with her token's current address.
            func result(_ email: String, as address: String) async throws -> String {
                let token = try await fixture.keys.token(address, subject: "ana@example.com")
                let device = GatewayDevice(fixture, bearer: token)
                let put = await device.mutation(
                    "put", me, "{\"name\":\"A\",\"email\":\"\(email)\"}", kind: "PersonLookup", in: "/common")
                let response = try await device.send([put])
                return String((response.results.first ?? response.body).prefix { $0 != " " })
            }
            func isFound() throws -> Bool {
                let lookup = try fixture.stored("/common")["PersonLookup/\(me.text)"]
                return lookup?.contains("\"new@example.com\"") == true
            }
            #expect(try await result("new@example.com", as: "ana@example.com") == "invalid-field")
            #expect(try await result("new@example.com", as: "New@example.com") == "accepted")
            #expect(try isFound())
            // The first address is still hers.
            #expect(try await result("ana@example.com", as: "new@example.com") == "accepted")
            #expect(try await result("other@example.com", as: "new@example.com") == "invalid-field")
            for address in ["ben@example.com", "ana@elsewhere.example"] {
                #expect(try await result(address, as: address) == "invalid-field")
            }
            // An earlier address is no longer accepted.
            #expect(try await result("new@example.com", as: "newer@example.com") == "invalid-field")
            let token = try await fixture.keys.token("new@example.com", subject: "ana@example.com")
            let request = Request(fixture.url("/v1/realms"), headers: [("Authorization", "Bearer \(token)")])
            let realms = GatewayResponse(try await fixture.client.send(request)).body
            let isFirst = realms.contains("/users/ana@example.com") && !realms.contains("/users/new@example.com")
            #expect(isFirst && realms.contains("\"person\":\"\(me.text)\""))
            let own = await first.mutation("delete", me, kind: "Location", in: "/users/new@example.com")
            #expect(try await first.send([own]).results == ["realm-not-permitted"])
        }
    }

    /// Managers open the archive by naming it, and it is listed once it exists; no caller writes into it.
    @Test func archiveOpensByItsName() async throws {
        try await withGateway { fixture in
            let manager = try await fixture.device("manager@example.com", role: .manager)
            let worker = try await fixture.device("worker@example.com")
            let task = UUID()
            func listed(_ device: GatewayDevice) async throws -> Bool {
                let response = GatewayResponse(try await fixture.client.send(device.request("GET", "/v1/realms")))
                return response.body.contains("{\"realm\":\"/archive\",\"permissions\":[\"read\"]}")
            }
            func sync(_ device: GatewayDevice, _ body: String) async throws -> String {
                GatewayResponse(try await fixture.client.send(device.request("POST", "/v1/sync", body))).body
            }
            #expect(try await listed(manager) == false)
            try fixture.put(.fieldTask, task, "{\"title\":\"old\"}", in: .archive)
            let lists = [try await listed(manager), try await listed(worker)]
            #expect(lists == [true, false])
            let unasked = try await sync(manager, "{}")
            #expect(!unasked.contains("/archive"))
            let named = "{\"realms\":{\"/archive\":null}}"
            #expect(try await sync(manager, named).contains("{\"open\":{\"realm\":\"/archive\""))
            #expect(try await sync(worker, named).contains("{\"closed\":{\"realm\":\"/archive\"}}"))
            let edit = await manager.mutation("patch", task, "{\"title\":\"x\"}", kind: "FieldTask", in: "/archive")
            #expect(try await manager.send([edit]).results == ["kind-not-allowed"])
        }
    }
}
