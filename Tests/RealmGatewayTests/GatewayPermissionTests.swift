import Access
import Essentials
import Foundation
import HTTPClient
import Model
import Postgres
import TestSupport
import Testing

@testable import RealmGateway

/// The table of permissions over HTTP: for every realm and caller, every kind, operation and field.
@Suite(.ownThreads) struct GatewayPermissionTests {
    @Test func everyCellOverHTTP() async throws {
        for kind in Kind.allCases { #expect(Set(PermissionBodies.values(kind).keys) == Set(kind.fieldNames)) }
        try await withGateway { fixture in
            let world = try await PermissionPlaces(fixture)
            var (cellCount, acceptedCount) = (0, 0)
            for caller in world.callers {
                var written = Written()
                for place in world.places {
                    try place.restore(fixture)
                    let keys = place.stored.map { "\(place.path) \($0.kind.rawValue)/\($0.id.text)" }
                    written.there.formUnion(keys)
                }
                try await list(caller, world)
                for place in world.places {
                    let access = Access(caller.standing, place.relations[caller.name] ?? .none)
                    try await read(caller, place.path, access)
                    cellCount += try await write(caller, place, world, &written)
                }
                try check(written, of: caller.name, fixture)
                acceptedCount += written.acceptedCount
            }
            #expect(cellCount > 20_000 && acceptedCount > 1_300, "\(cellCount), \(acceptedCount) accepted")
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
            let rights = PermissionTable.mayWrite(realmClass, access) ? ["read", "write"] : ["read"]
            let expected = PermissionTable.mayRead(realmClass, access) ? rights : nil
            #expect(listed[path] == expected, "\(caller.name) \(path)")
        }
    }

    private func read(_ caller: PermissionPlaces.Caller, _ path: RealmPath, _ access: Access) async throws {
        let (device, name) = (caller.device, caller.name)
        let body = "{\"realms\":{\"\(path)\":null}}"
        let answer = Answer(try await device.fixture.client.send(device.request("POST", "/v1/sync", body)))
        let mayRead = PermissionTable.mayRead(path.realmClass, access)
        let expected = mayRead ? "{\"open\":{\"realm\":\"\(path)\"" : "{\"closed\":{\"realm\":\"\(path)\"}}"
        let others = mayRead ? "{\"closed\":{\"realm\":\"\(path)\"" : "{\"open\":{\"realm\":\"\(path)\""
        #expect(answer.body.contains(expected), "\(name) \(path)")
        #expect(!answer.body.contains(others) && answer.body.contains("{\"objects\":{\"realm\":\"\(path)\"") == mayRead)
    }

    private struct Cell {
        let target: PermissionPlaces.Target
        let operation: Mutation.Operation
        /// `nil` with a delete.
        let field: String?

        /// A put has all fields without which there is no such object.
        var names: [String] {
            guard let field else { return [] }
            let required = operation == .put ? PermissionBodies.required(target.kind) : []
            return required.contains(field) ? required : required + [field]
        }

        var fields: String? { field == nil ? nil : PermissionBodies.json(names, target.values) }
    }

    /// Every kind, operation and field, of an object that is new, of one that is there, and of the caller's own. What
    /// is there is deleted last, and the share whose realm it is after all else.
    private func cells(
        _ caller: PermissionPlaces.Caller, _ place: PermissionPlaces.Place, _ world: PermissionPlaces
    ) -> [Cell] {
        var cells: [Cell] = []
        for operation in Mutation.Operation.allCases {
            for kind in Kind.allCases {
                let fields = operation == .delete ? [nil] : (kind.fieldNames + ["nonsense"]).map(Optional.some)
                for field in fields {
                    for target in world.targets(kind, caller, in: place) {
                        cells.append(Cell(target: target, operation: operation, field: field))
                    }
                }
            }
        }
        func isLast(_ cell: Cell) -> Bool {
            cell.operation == .delete && place.path.realmClass == .share(cell.target.id)
        }
        return cells.filter { !isLast($0) } + cells.filter(isLast)
    }

    /// What is there and what is gone, as far as this test wrote it, by realm, kind and id.
    private struct Written {
        var there: Set<String> = []
        var gone: Set<String> = []
        var acceptedCount = 0

        /// What the table says to a cell, and what follows from it.
        mutating func expect(
            _ cell: Cell, _ caller: PermissionPlaces.Caller, in place: PermissionPlaces.Place
        ) -> String {
            let (target, path) = (cell.target, place.path)
            let key = "\(path) \(target.kind.rawValue)/\(target.id.text)"
            let isThere = there.contains(key)
            var object = ObjectStanding(target.kind, isOwn: target.id == caller.person)
            if cell.field == "role" { (object.roleBefore, object.roleAfter) = (target.role, .worker) }
            let problem = PermissionTable.problem(
                of: cell.operation, object, fields: cell.names, in: path.realmClass,
                Access(caller.standing, place.relations[caller.name] ?? .none))
            if let problem { return problem.rawValue }
            switch cell.operation {
            case .put: there.insert(key)
            case .patch: guard isThere else { return MutationProblem.Code.unknownObject.rawValue }
            case .delete: if there.remove(key) != nil { gone.insert(key) }
            }
            acceptedCount += 1
            return "accepted"
        }
    }

    private func write(
        _ caller: PermissionPlaces.Caller, _ place: PermissionPlaces.Place, _ world: PermissionPlaces,
        _ written: inout Written
    ) async throws -> Int {
        let cells = cells(caller, place, world)
        var index = 0
        while index < cells.count {
            let part = cells[index..<min(index + 500, cells.count)]
            var mutations: [String] = []
            for cell in part {
                mutations.append(
                    await caller.device.mutation(
                        cell.operation.rawValue, cell.target.id, cell.fields, kind: cell.target.kind.rawValue,
                        in: place.path.description))
            }
            let answer = try await caller.device.send(mutations)
            try #require(answer.status == 200 && answer.results.count == part.count, "\(answer.body)")
            for (cell, result) in zip(part, answer.results) {
                let expected = written.expect(cell, caller, in: place)
                if result.prefix(while: { $0 != " " }) == expected { continue }
                Issue.record("\(caller.name) \(place.path) \(cell): \(result), and not \(expected)")
            }
            index += part.count
        }
        return cells.count
    }

    /// What was accepted is in PostgreSQL, and what was deleted is not.
    private func check(_ written: Written, of caller: String, _ fixture: GatewayFixture) throws {
        let stored = try fixture.withDatabase { connection in
            let rows = try connection.run(
                """
                SELECT r.path || ' ' || o.kind || '/' || o.id
                FROM realm.object o JOIN realm.realm r ON (r.environment_id, r.id) = (o.environment_id, o.realm_id)
                WHERE NOT o.deleted
                """)
            return Set(try rows.map { row in try row.value(0, as: String.self) })
        }
        #expect(written.there.subtracting(stored).sorted() == [], "\(caller)")
        #expect(written.gone.intersection(stored).sorted() == [], "\(caller)")
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
