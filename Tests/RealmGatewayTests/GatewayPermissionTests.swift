import Foundation
import HTTP
import Model
import Postgres
import Testing

@testable import RealmGateway

/// The table of permissions over HTTP: for every realm and caller, every kind, operation and field.
@Suite struct GatewayPermissionTests {
    /// What is refused because of who asks; anything else is about the object.
    private static let refusals: Set<String> = [
        "realm-not-permitted", "kind-not-allowed", "operation-not-allowed", "field-not-allowed", "unknown-field",
    ]

    @Test func everyCellOverHTTP() async throws {
        try await withGateway { fixture in
            let world = try await PermissionPlaces(fixture)
            var cellCount = 0
            for caller in world.callers {
                for place in world.places { try place.restore(fixture) }
                try await list(caller, world)
                for place in world.places {
                    let access = Access(caller.standing, place.relations[caller.name] ?? .none)
                    try await read(caller, place.path, access)
                    cellCount += try await write(caller, place, access)
                }
            }
            #expect(cellCount > 20_000)
        }
    }

    /// What `GET /v1/realms` says: all that may be read, and whether anything of it may be written.
    private func list(_ caller: PermissionPlaces.Caller, _ world: PermissionPlaces) async throws {
        let device = caller.device
        let answer = Answer(try await device.fixture.client.send(device.request("GET", "/v1/realms")))
        let realms = try #require(answer.json["realms"] as? [[String: Any]])
        var listed: [String: [String]] = [:]
        for realm in realms { listed[try #require(realm["realm"] as? String)] = realm["permissions"] as? [String] }
        for place in world.places {
            let access = Access(caller.standing, place.relations[caller.name] ?? .none)
            let (realmClass, path) = (place.path.realmClass, place.path.description)
            let rights = Permissions.mayWrite(realmClass, access) ? ["read", "write"] : ["read"]
            let expected = Permissions.mayRead(realmClass, access) ? rights : nil
            #expect(listed[path] == expected, "\(caller.name) \(path)")
        }
    }

    private func read(_ caller: PermissionPlaces.Caller, _ path: RealmPath, _ access: Access) async throws {
        let (device, name) = (caller.device, caller.name)
        let body = "{\"realms\":{\"\(path)\":null}}"
        let answer = Answer(try await device.fixture.client.send(device.request("POST", "/v1/sync", body)))
        let mayRead = Permissions.mayRead(path.realmClass, access)
        let expected = mayRead ? "{\"open\":{\"realm\":\"\(path)\"" : "{\"closed\":{\"realm\":\"\(path)\"}}"
        let others = mayRead ? "{\"closed\":{\"realm\":\"\(path)\"" : "{\"open\":{\"realm\":\"\(path)\""
        #expect(answer.body.contains(expected), "\(name) \(path)")
        #expect(!answer.body.contains(others) && answer.body.contains("{\"objects\":{\"realm\":\"\(path)\"") == mayRead)
    }

    private struct Cell {
        let kind: Kind
        let operation: Mutation.Operation
        /// `-` with a delete.
        let field: String
        let id: UUID
        let isNew: Bool

        var fields: String? {
            field == "-" ? nil : "{\"\(field)\":\(field == "role" ? "\"worker\"" : "0")}"
        }

        func isAllowed(_ caller: PermissionPlaces.Caller, _ realm: RealmClass, _ access: Access) -> Bool {
            let object = ObjectStanding(
                kind, isOwn: id == caller.person, isNew: isNew, roleAfter: field == "role" ? .worker : nil)
            return Permissions.objection(
                to: operation, object, fields: field == "-" ? [] : [field], in: realm, access) == nil
        }
    }

    /// Every kind, operation and field, of an object that is new, of one that is there, and of the caller's own.
    private func write(
        _ caller: PermissionPlaces.Caller, _ place: PermissionPlaces.Place, _ access: Access
    ) async throws -> Int {
        var cells: [Cell] = []
        // What is there is deleted last.
        for operation in Mutation.Operation.allCases {
            for kind in Kind.allCases {
                for field in operation == .delete ? ["-"] : kind.fieldNames + ["nonsense"] {
                    for (id, isNew) in place.objects(kind, caller) {
                        cells.append(Cell(kind: kind, operation: operation, field: field, id: id, isNew: isNew))
                    }
                }
            }
        }
        var index = 0
        while index < cells.count {
            let part = cells[index..<min(index + 500, cells.count)]
            var mutations: [String] = []
            for cell in part {
                mutations.append(
                    await caller.device.mutation(
                        cell.operation.rawValue, cell.id, cell.fields, kind: cell.kind.rawValue,
                        in: place.path.description))
            }
            let answer = try await caller.device.send(mutations)
            try #require(answer.status == 200, "\(answer.body)")
            for (cell, result) in zip(part, answer.results)
            where Self.refusals.contains(result) == cell.isAllowed(caller, place.path.realmClass, access) {
                Issue.record("\(caller.name) \(place.path) \(cell): \(result)")
            }
            index += part.count
        }
        return cells.count
    }

    @Test func whatPeopleWriteOfThemselvesAndManagersOfThem() async throws {
        try await withGateway { fixture in
            let worker = try await fixture.device("worker@example.com")
            let manager = try await fixture.device("manager@example.com", role: .manager)
            let (me, boss) = (try fixture.person("worker@example.com"), try fixture.person("manager@example.com"))
            func patch(_ device: GatewayDevice, _ id: UUID, _ fields: String) async throws -> String {
                let mutation = await device.mutation("patch", id, fields, kind: "Person", in: "/common")
                return try await device.send([mutation]).results[0].split(separator: " ").map(String.init)[0]
            }
            #expect(try await patch(worker, me, "{\"name\":\"Wendy\"}") == "accepted")
            #expect(try await patch(worker, me, "{\"role\":\"manager\"}") == "field-not-allowed")
            #expect(try await patch(worker, boss, "{\"name\":\"Nobody\"}") == "kind-not-allowed")
            #expect(try await patch(manager, me, "{\"name\":\"Nobody\"}") == "field-not-allowed")
            #expect(try await patch(manager, boss, "{\"role\":\"admin\"}") == "field-not-allowed")
            #expect(try await patch(manager, me, "{\"role\":\"admin\"}") == "field-not-allowed")
            #expect(try await patch(manager, me, "{\"role\":\"emperor\"}") == "invalid-field")
            #expect(try await patch(manager, me, "{\"role\":\"manager\"}") == "accepted")
            #expect(
                try fixture.stored("/common")["Person/\(me.text)"] == "{\"name\":\"Wendy\",\"role\":\"manager\"}")
            let long = String(repeating: "x", count: 5_000)
            #expect(try await patch(worker, me, "{\"name\":\"\(long)\"}") == "too-large")
            let records = try fixture.withDatabase { connection in
                try connection.run(
                    "SELECT actor, action, subject, detail->>'to', address FROM access.audit WHERE action LIKE 'role%'"
                ).map { row in try (0..<5).map { try row.value($0, as: String.self) } }
            }
            #expect(records == [["manager@example.com", "role.changed", me.text, "manager", "127.0.0.1"]])
        }
    }
}
