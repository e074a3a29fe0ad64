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

    private struct Place {
        let path: RealmPath
        /// How the worker and the manager stand to it; the admin is a stranger wherever the manager is.
        let worker: Relation
        let manager: Relation
    }

    private struct World {
        let places: [Place]
        let callers: [(name: String, device: GatewayDevice, id: UUID, standing: Standing)]
    }

    private func makeWorld(_ fixture: GatewayFixture) async throws -> World {
        let worker = try await fixture.device("worker@example.com")
        let manager = try await fixture.device("manager@example.com", role: .manager)
        let admin = try await fixture.device("admin@example.com", role: .admin)
        let other = try await fixture.device("other@example.com")
        let ids = try ["worker", "manager", "admin", "other"].map { try fixture.person("\($0)@example.com") }
        let (catalogue, strange) = (UUID(), UUID())
        try fixture.put(
            .user, UUID(), "{\"email\":\"worker@example.com\",\"name\":\"W\",\"catalogue\":\"\(catalogue.text)\"}",
            in: try .user("worker@example.com"))
        let (mine, theirs) = (UUID(), UUID())
        try fixture.makeTeam(mine, members: [ids[0]])
        try fixture.makeTeam(theirs, members: [ids[3]])
        let (given, gotten, foreign) = (UUID(), UUID(), UUID())
        let emails = ["worker@example.com", "manager@example.com"]
        try fixture.makeShare(given, owner: ids[0], recipient: ids[1], emails: emails)
        try fixture.makeShare(gotten, owner: ids[1], recipient: ids[0], emails: emails)
        try fixture.makeShare(foreign, owner: ids[3], recipient: ids[2], emails: ["other@example.com"])
        // A reference alone opens nothing: what the share's own realm says counts.
        try fixture.put(.share, foreign, "{}", in: try .user("worker@example.com"))
        _ = other
        return World(
            places: [
                Place(path: .users, worker: .none, manager: .none),
                Place(path: try .user("worker@example.com"), worker: .owner, manager: .none),
                Place(path: try .user("manager@example.com"), worker: .none, manager: .owner),
                Place(path: .catalogue(catalogue), worker: .referrer, manager: .none),
                Place(path: .catalogue(strange), worker: .none, manager: .none),
                Place(path: .common, worker: .none, manager: .none),
                Place(path: .manager, worker: .none, manager: .none),
                Place(path: .team(mine), worker: .member, manager: .none),
                Place(path: .team(theirs), worker: .none, manager: .none),
                Place(path: .share(given), worker: .owner, manager: .recipient),
                Place(path: .share(gotten), worker: .recipient, manager: .owner),
                Place(path: .share(foreign), worker: .none, manager: .none),
                Place(path: try #require(RealmPath("/polls")), worker: .none, manager: .none),
            ],
            callers: [
                ("worker", worker, ids[0], .person(.worker)), ("manager", manager, ids[1], .person(.manager)),
                ("admin", admin, ids[2], .person(.admin)),
            ])
    }

    private func relation(_ place: Place, _ name: String) -> Relation {
        switch name {
        case "worker": place.worker
        case "manager": place.manager
        default: .none
        }
    }

    @Test func everyCellOverHTTP() async throws {
        try await withGateway { fixture in
            let world = try await makeWorld(fixture)
            var cellCount = 0
            for (name, device, id, standing) in world.callers {
                for place in world.places where !(name == "admin" && Self.isShareOfAdmin(place, world)) {
                    let access = Access(standing, relation(place, name))
                    try await read(device, place.path, access, name)
                    cellCount += try await write(device, id, place.path, access, name)
                }
            }
            #expect(cellCount > 5000)
        }
    }

    /// The share `foreign` is the admin's to read.
    private static func isShareOfAdmin(_ place: Place, _ world: World) -> Bool {
        place.path == world.places[world.places.count - 2].path
    }

    private func read(_ device: GatewayDevice, _ path: RealmPath, _ access: Access, _ name: String) async throws {
        let body = "{\"realms\":{\"\(path)\":null}}"
        let answer = Answer(try await device.fixture.client.send(device.request("POST", "/v1/sync", body)))
        let mayRead = Permissions.mayRead(path.realmClass, access)
        let expected = mayRead ? "{\"open\":{\"realm\":\"\(path)\"" : "{\"closed\":{\"realm\":\"\(path)\"}}"
        let others = mayRead ? "{\"closed\":{\"realm\":\"\(path)\"" : "{\"open\":{\"realm\":\"\(path)\""
        #expect(answer.body.contains(expected), "\(name) \(path)")
        #expect(!answer.body.contains(others), "\(name) \(path)")
    }

    private func write(
        _ device: GatewayDevice, _ me: UUID, _ path: RealmPath, _ access: Access, _ name: String
    ) async throws -> Int {
        var sent: [(mutation: String, isAllowed: Bool, what: String)] = []
        for kind in Kind.allCases {
            for operation in Mutation.Operation.allCases {
                let names = operation == .delete ? ["-"] : kind.fieldNames + ["nonsense"]
                for field in names {
                    for isOwn in [false, true] where !isOwn || operation != .delete && kind != .timeEntry {
                        let fields =
                            operation == .delete ? nil : "{\"\(field)\":\(field == "role" ? "\"worker\"" : "0")}"
                        let mutation = await device.mutation(
                            operation.rawValue, isOwn ? me : UUID(), fields, kind: kind.rawValue,
                            in: path.description)
                        let object = ObjectStanding(
                            kind, isOwn: isOwn, isNew: true, roleAfter: field == "role" ? .worker : nil)
                        let objection = Permissions.objection(
                            to: operation, object, fields: field == "-" ? [] : [field], in: path.realmClass, access)
                        sent.append((mutation, objection == nil, "\(name) \(path) \(kind) \(operation) \(field)"))
                    }
                }
            }
        }
        var index = 0
        while index < sent.count {
            let part = sent[index..<min(index + 400, sent.count)]
            let answer = try await device.send(part.map(\.mutation))
            try #require(answer.status == 200, "\(answer.body)")
            for (cell, result) in zip(part, answer.results) where Self.refusals.contains(result) == cell.isAllowed {
                Issue.record("\(cell.what): \(result)")
            }
            index += 400
        }
        return sent.count
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
