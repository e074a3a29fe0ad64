import Access
import Essentials
import Foundation
import HTTPClient
import KindSchema
import Model
import ObjectStore
import Postgres
import TestSupport
import Testing

@testable import RealmGateway

/// Kinds that an environment declares: validation, permissions and sync, between versions too.
@Suite(.ownThreads) struct GatewayOwnKindTests {
    private static let inspection = """
        {"kinds": {"Inspection": {
            "realms": ["user", "team", "common"],
            "properties": {
                "site": {"type": "string", "maxLength": 20},
                "state": {"enum": ["draft", "sent"]},
                "photos": {"type": "array", "maxItems": 3,
                    "items": {"type": "string", "format": "uuid", "references": "image"}},
                "receipt": {"type": "string", "format": "uuid", "references": "image", "readOnly": true}
            },
            "required": ["site"],
            "permissions": [
                {"who": ["owner", "member"], "may": ["create"]},
                {"who": ["owner", "member"], "may": ["change"], "fields": ["state", "photos"]},
                {"who": ["owner", "manager"], "may": ["delete"], "realms": ["user", "team"]}
            ]
        }}}
        """

    @Test func objectsOfOwnKindsAreValidatedAndSynchronised() async throws {
        try await withGateway { fixture in
            let ana = try await fixture.device("ana@example.com")
            let id = UUID()
            func send(_ op: String, _ fields: String?, in realm: String? = nil) async throws -> String {
                let mutation = await ana.mutation(op, id, fields, kind: "Inspection", in: realm)
                return try await ana.send([mutation]).results[0]
            }
            #expect(try await send("put", #"{"site":"Roof"}"#).hasPrefix("unknown-kind"))
            try fixture.apply(Self.inspection)
            // The gateway has not loaded the version yet: the first mutation is accepted nevertheless.
            #expect(try await send("put", #"{"site":"Roof","photos":[],"state":null}"#).hasPrefix("accepted"))
            let refused = [
                (#"{"state":"lost"}"#, "invalid-field"), (#"{"photos":[1]}"#, "invalid-field"),
                (#"{"site":"Other"}"#, "field-not-allowed"), (#"{"receipt":null}"#, "field-not-allowed"),
                (#"{"weight":1}"#, "unknown-field"),
            ]
            for (fields, code) in refused {
                #expect(try await send("patch", fields).hasPrefix(code), "\(fields)")
            }
            let two = #"["\#(UUID().text)","no"]"#
            let patch = await ana.mutation("patch", id, #"{"photos":\#(two)}"#, kind: "Inspection")
            let problem = try await ana.send([patch]).body
            #expect(problem.contains("Inspection is invalid: /photos/1: "), "\(problem)")
            #expect(try await send("patch", #"{"state":"sent"}"#).hasPrefix("accepted"))
            #expect(try await send("put", #"{"site":"Roof"}"#, in: "/common").hasPrefix("kind-not-allowed"))
            #expect(try await send("put", #"{"site":"Roof"}"#, in: "/manager").hasPrefix("realm-not-permitted"))
            try await ana.sync()
            let realm = await ana.realm
            let held = await ana.copy[realm]?["Inspection/\(id.text)"]
            #expect(try held?.fields != nil && held?.fields == fixture.stored(realm)["Inspection/\(id.text)"])
            #expect(try await send("delete", nil).hasPrefix("accepted"))
            try await ana.sync()
            #expect(await ana.copy[realm]?["Inspection/\(id.text)"]?.fields == nil)
        }
    }

    /// A change reaches a device that is live, and an integration that reads everything, also of a kind that is
    /// declared meanwhile, without a reset.
    @Test func liveStreamsGetKindsThatAreDeclaredMeanwhile() async throws {
        try await withGateway { fixture in
            let ana = try await fixture.device("ana@example.com")
            let books = EnvironmentCopy(fixture, key: try fixture.addIntegration("books"))
            // It names the kinds of its version.
            let named = EnvironmentCopy(
                fixture, key: try fixture.addIntegration("named"),
                kinds: Kind.allCases.filter(Permissions.isReadByIntegrations))
            let following: [Task<Void, any Error>] = [
                Task { try await ana.follow() }, Task { try await books.follow() }, Task { try await named.follow() },
            ]
            defer { for task in following { task.cancel() } }
            try await ana.wait("live") { $0.checkpointCount > 0 }
            for copy in [books, named] { try await copy.wait("live") { $0.checkpointCount > 0 } }
            let resets = (await ana.resets.count, await books.resetCount, await named.resetCount)
            let realm = await ana.realm
            for version in 1...3 {
                let names = (1...version).map { #""Extra\#($0)":{"realms":["user"],"properties":{"a":{}},"# }
                let kinds = names.map { $0 + #""permissions":[{"who":["owner"],"may":["create"]}]}"# }
                try fixture.apply("{\"kinds\":{\(kinds.joined(separator: ","))}}")
                let id = UUID()
                let mutation = await ana.mutation("put", id, #"{"a":1}"#, kind: "Extra\(version)")
                #expect(try await ana.send([mutation]).results[0].hasPrefix("accepted"))
                try await ana.wait("the object") { $0.copy[$0.realm]?["Extra\(version)/\(id.text)"] != nil }
                try await books.wait("the object") { $0.copy[realm]?["Extra\(version)/\(id.text)"] != nil }
            }
            // Later changes of the named kinds arrive, and no others.
            let note = await ana.mutation("put", UUID(), #"{"title":"Later"}"#, kind: "Note")
            #expect(try await ana.send([note]).results[0].hasPrefix("accepted"))
            try await named.wait("the note") { $0.shown[realm]?.isEmpty == false }
            #expect(await named.shown[realm]?.keys.allSatisfy { $0.hasPrefix("Note/") } == true)
            #expect((await ana.resets.count, await books.resetCount, await named.resetCount) == resets)
            let all = EnvironmentCopy(fixture, key: try fixture.addIntegration("all"))
            await all.resume(from: .init(cursor: try #require(await named.cursor), copy: [:]))
            try await all.sync()
            #expect(await all.resetCount == 1)
            #expect(await all.shown[realm]?.count == 4)
            // Another device downloads all.
            let other = try await fixture.device("ana@example.com")
            try await other.sync()
            #expect(await other.copy[realm]?.keys.filter { $0.hasPrefix("Extra") }.count == 3)
        }
    }

    /// Devices of three versions of an app, each of which writes the fields of its version, during new versions of the
    /// file: nothing is lost, and no device is reset.
    @Test func devicesOfSeveralVersionsConverge() async throws {
        @Sendable func version(_ number: Int) -> String {
            let fields = (1...number).map { #""field\#($0)":{"type":["integer","null"]}"# }.joined(separator: ",")
            return #"{"kinds":{"Form":{"realms":["user"],"properties":{\#(fields)},"#
                + #""permissions":[{"who":["owner"],"may":["create","change"]}]}}}"#
        }
        try await withGateway(count: 2) { fixture in
            try fixture.apply(version(1))
            var devices: [GatewayDevice] = []
            for index in 0..<3 {
                devices.append(try await GatewayDevice(fixture, "ana@example.com", gateway: index % 2))
            }
            let live = devices.map { device in Task { try await device.follow() } }
            defer { for task in live { task.cancel() } }
            for device in devices { try await device.wait("live") { $0.checkpointCount > 0 } }
            let ids = (0..<3).map { _ in UUID() }
            for id in ids {
                let put = await devices[0].mutation("put", id, #"{"field1":0}"#, kind: "Form")
                #expect(try await devices[0].send([put]).results[0].hasPrefix("accepted"))
            }
            for round in 1...4 {
                if round > 1 { try fixture.apply(version(round)) }
                for (index, device) in devices.enumerated() {
                    let field = min(index + 1, round)
                    let patch = await device.mutation("patch", ids[index], "{\"field\(field)\":\(round)}", kind: "Form")
                    #expect(try await device.send([patch], at: round % 2).results[0].hasPrefix("accepted"))
                }
            }
            let end = Int(try fixture.counter().position)
            let stored = try fixture.stored("/users/ana@example.com")
            for device in devices {
                try await device.wait("the end") { $0.checkpoint >= end }
                let held = await device.copy["/users/ana@example.com"]?.compactMapValues(\.fields) ?? [:]
                #expect(held.filter { $0.key.hasPrefix("Form/") } == stored.filter { $0.key.hasPrefix("Form/") })
                #expect(await device.resets.count <= 1)
                #expect(await device.repeats == [])
            }
            #expect(stored["Form/\(ids[2].text)"] == #"{"field1":1,"field2":2,"field3":4}"#)
        }
    }

    @Test func imagesOfOwnKindsAreReadByTheReadersOfTheirObjects() async throws {
        try await withGateway { fixture in
            try fixture.apply(Self.inspection)
            let (ana, ben) = (try await fixture.device("ana@example.com"), try await fixture.device("ben@example.com"))
            let (id, photos) = (UUID(), [UUID(), UUID()])
            for photo in photos { #expect(try await ana.putBlob(photo, TestImage.make(.jpeg)).status == 201) }
            let list = photos.map { "\"\($0.text)\"" }.joined(separator: ",")
            let put = await ana.mutation("put", id, #"{"site":"Roof","photos":[\#(list)]}"#, kind: "Inspection")
            #expect(try await ana.send([put]).results[0].hasPrefix("accepted"))
            #expect(try fixture.blobReferences() == Set(photos))
            for photo in photos {
                #expect(try await ana.getBlob(photo).status == 200)
                #expect(try await ben.getBlob(photo).status == 404)
            }
            let books = GatewayDevice(fixture, bearer: try fixture.addIntegration("books"))
            #expect(try await books.getBlob(photos[0]).status == 200)
            let patch = await ana.mutation("patch", id, #"{"photos":["\#(photos[1])"]}"#, kind: "Inspection")
            #expect(try await ana.send([patch]).results[0].hasPrefix("accepted"))
            #expect(try fixture.blobReferences() == [photos[1]])
            let delete = await ana.mutation("delete", id, kind: "Inspection")
            #expect(try await ana.send([delete]).results[0].hasPrefix("accepted"))
            #expect(try fixture.blobReferences() == [])
        }
    }

    @Test func schemaIsReturnedWithItsTag() async throws {
        try await withGateway { fixture in
            let ana = try await fixture.device("ana@example.com")
            let none = GatewayResponse(try await ana.schema())
            #expect(none.status == 200 && none.body == #"{"version":0,"kinds":{}}"#)
            try fixture.apply(#"{"kinds":{"A":{"realms":["user"],"properties":{"a":{"type":"string"}}}}}"#)
            let schema = GatewayResponse(try await ana.schema())
            #expect(
                schema.body == #"{"version":1,"kinds":{"A":{"realms":["user"],"#
                    + #""properties":{"a":{"type":"string"}}}}}"#)
            let tag = try #require(schema.headers["ETag"])
            #expect(try await ana.schema(holding: tag).status == 304)
            try fixture.apply(#"{"kinds":{"A":{"realms":["user"],"properties":{"a":{}}}}}"#)
            #expect(try await ana.schema(holding: tag).status == 200)
        }
    }

    /// An object that is written while its kind is removed: either the version is refused, or the write is.
    @Test func writesAndVersionsAreSerialised() async throws {
        try await withGateway { fixture in
            let ana = try await fixture.device("ana@example.com")
            for round in 0..<20 {
                let kind = "Round\(round)"
                try fixture.apply(
                    #"{"kinds":{"\#(kind)":{"realms":["user"],"properties":{"a":{}},"#
                        + #""permissions":[{"who":["owner"],"may":["create"]}]}}}"#)
                let mutation = await ana.mutation("put", UUID(), #"{"a":1}"#, kind: kind)
                async let sent = ana.send([mutation]).results[0]
                let isRemoved = (try? fixture.apply(#"{"kinds":{}}"#)) != nil
                let result = try await sent
                #expect(result.hasPrefix(isRemoved ? "unknown-kind" : "accepted"), "\(round): \(result)")
                if !isRemoved { try fixture.deleteObjects(of: kind) }
            }
        }
    }
}

extension GatewayDevice {
    /// - Parameter tag: The tag of what the device holds.
    nonisolated func schema(holding tag: String? = nil) async throws -> HTTPClient.Response {
        var request = request("GET", "/v1/schema")
        if let tag { request.headers.append(("If-None-Match", tag)) }
        return try await fixture.client.send(request)
    }
}

extension GatewayFixture {
    /// Makes a schema file the environment's newest version.
    func apply(_ file: String) throws {
        try withDatabase { connection in
            let application = try KindApplication(
                try SchemaValue(Array(file.utf8)), to: environment, on: &connection)
            _ = try application.commit(by: "test", on: &connection) { _ in [] }
        }
    }

    /// The blobs to which objects refer.
    fileprivate func blobReferences() throws -> Set<UUID> {
        try withDatabase { Set(try $0.run("SELECT blob_id FROM blob.reference").decode(UUID.self)) }
    }

    fileprivate func deleteObjects(of kind: String) throws {
        try withDatabase {
            _ = try $0.run(
                "DELETE FROM store.object WHERE kind = (SELECT number FROM realm.kind WHERE name = \(kind))")
        }
    }
}
