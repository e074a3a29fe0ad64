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
    @Test func everyCellHoldsOverHTTP() async throws {
        for kind in Kind.allCases { #expect(Set(PermissionBodies.values(kind).keys) == Set(kind.fieldNames)) }
        try await withGateway { fixture in
            let world = try await PermissionMatrix(fixture)
            var (cellCount, acceptedCount) = (0, 0)
            for caller in world.callers {
                var written = Written()
                for realmCase in world.realmCases {
                    try realmCase.restore(fixture)
                    let keys = realmCase.stored.map { "\(realmCase.path) \($0.kind.rawValue)/\($0.id.text)" }
                    written.there.formUnion(keys)
                }
                try await list(caller, world)
                for realmCase in world.realmCases {
                    let access = Access(caller.standing, realmCase.relations[caller.name] ?? .none)
                    try await read(caller, realmCase.path, access)
                    cellCount += try await write(caller, realmCase, world, &written)
                }
                try check(written, of: caller.name, fixture)
                acceptedCount += written.acceptedCount
            }
            #expect(cellCount > 20_000 && acceptedCount > 1_300, "\(cellCount), \(acceptedCount) accepted")
        }
    }

    /// Checks `GET /v1/realms`: all readable realms, and whether anything in them is writable.
    private func list(_ caller: PermissionMatrix.Caller, _ world: PermissionMatrix) async throws {
        let device = caller.device
        let response = GatewayResponse(try await device.fixture.client.send(device.request("GET", "/v1/realms")))
        let realms = try #require(response.json["realms"] as? [[String: Any]])
        var listed: [String: [String]] = [:]
        for realm in realms { listed[try #require(realm["realm"] as? String)] = realm["permissions"] as? [String] }
        for realmCase in world.realmCases {
            let access = Access(caller.standing, realmCase.relations[caller.name] ?? .none)
            let (realmClass, path) = (realmCase.path.realmClass, realmCase.path.description)
            let rights = PermissionTable.mayWrite(realmClass, access) ? ["read", "write"] : ["read"]
            let expected = PermissionTable.mayRead(realmClass, access) ? rights : nil
            #expect(listed[path] == expected, "\(caller.name) \(path)")
        }
    }

    private func read(_ caller: PermissionMatrix.Caller, _ path: RealmPath, _ access: Access) async throws {
        let (device, name) = (caller.device, caller.name)
        let body = "{\"realms\":{\"\(path)\":null}}"
        let response = GatewayResponse(try await device.fixture.client.send(device.request("POST", "/v1/sync", body)))
        let mayRead = PermissionTable.mayRead(path.realmClass, access)
        let expected = mayRead ? "{\"open\":{\"realm\":\"\(path)\"" : "{\"closed\":{\"realm\":\"\(path)\"}}"
        let others = mayRead ? "{\"closed\":{\"realm\":\"\(path)\"" : "{\"open\":{\"realm\":\"\(path)\""
        #expect(response.body.contains(expected), "\(name) \(path)")
        #expect(
            !response.body.contains(others) && response.body.contains("{\"objects\":{\"realm\":\"\(path)\"") == mayRead)
    }

    private struct Cell {
        let target: PermissionMatrix.Target
        let operation: Mutation.Operation
        /// `nil` for a delete.
        let field: String?

        /// A put has all required fields.
        var names: [String] {
            guard let field else { return [] }
            let required = operation == .put ? PermissionBodies.required(target.kind) : []
            return required.contains(field) ? required : required + [field]
        }

        var fields: String? { field == nil ? nil : PermissionBodies.json(names, target.values) }
    }

    /// Every kind, operation and field, of a new object, of an existing one and of the caller's own. Existing objects
    /// are deleted last, and the share that owns the realm after all others.
    private func cells(
        _ caller: PermissionMatrix.Caller, _ realmCase: PermissionMatrix.RealmCase, _ world: PermissionMatrix
    ) -> [Cell] {
        var cells: [Cell] = []
        for operation in Mutation.Operation.allCases {
            for kind in Kind.allCases {
                let fields = operation == .delete ? [nil] : (kind.fieldNames + ["nonsense"]).map(Optional.some)
                for field in fields {
                    for target in world.targets(kind, caller, in: realmCase) {
                        cells.append(Cell(target: target, operation: operation, field: field))
                    }
                }
            }
        }
        func isLast(_ cell: Cell) -> Bool {
            cell.operation == .delete && realmCase.path.realmClass == .share(cell.target.id)
        }
        return cells.filter { !isLast($0) } + cells.filter(isLast)
    }

    /// The objects that this test wrote and deleted, by realm, kind and id.
    private struct Written {
        var there: Set<String> = []
        var gone: Set<String> = []
        var acceptedCount = 0

        /// Returns the table's result for a cell, and applies it.
        mutating func expect(
            _ cell: Cell, _ caller: PermissionMatrix.Caller, in realmCase: PermissionMatrix.RealmCase
        ) -> String {
            let (target, path) = (cell.target, realmCase.path)
            let key = "\(path) \(target.kind.rawValue)/\(target.id.text)"
            let isThere = there.contains(key)
            var object = WriteTarget(target.kind, isOwn: target.isOwn(caller))
            if cell.field == "role" { (object.roleBefore, object.roleAfter) = (target.role, .worker) }
            let problem = PermissionTable.problem(
                of: cell.operation, object, fields: cell.names, in: path.realmClass,
                Access(caller.standing, realmCase.relations[caller.name] ?? .none))
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
        _ caller: PermissionMatrix.Caller, _ realmCase: PermissionMatrix.RealmCase, _ world: PermissionMatrix,
        _ written: inout Written
    ) async throws -> Int {
        let cells = cells(caller, realmCase, world)
        var index = 0
        while index < cells.count {
            let part = cells[index..<min(index + 500, cells.count)]
            var mutations: [String] = []
            for cell in part {
                mutations.append(
                    await caller.device.mutation(
                        cell.operation.rawValue, cell.target.id, cell.fields, kind: cell.target.kind.rawValue,
                        in: realmCase.path.description))
            }
            let response = try await caller.device.send(mutations)
            try #require(response.status == 200 && response.results.count == part.count, "\(response.body)")
            for (cell, result) in zip(part, response.results) {
                let expected = written.expect(cell, caller, in: realmCase)
                if result.prefix(while: { $0 != " " }) == expected { continue }
                Issue.record("\(caller.name) \(realmCase.path) \(cell): \(result), expected \(expected)")
            }
            index += part.count
        }
        return cells.count
    }

    /// Accepted objects are in PostgreSQL, and deleted ones are not.
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

    @Test func peopleWriteTheirPersonAndManagersWriteThatOfOthers() async throws {
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
            #expect(try await patch(manager, me, "{\"name\":\"Wendy W.\"}") == "accepted")
            #expect(try await patch(manager, boss, "{\"role\":\"admin\"}") == "field-not-allowed")
            #expect(try await patch(manager, me, "{\"role\":\"admin\"}") == "field-not-allowed")
            #expect(try await patch(manager, me, "{\"role\":\"emperor\"}") == "invalid-field")
            #expect(try await patch(manager, me, "{\"role\":\"manager\"}") == "accepted")
            #expect(
                try fixture.stored("/common")["Person/\(me.text)"] == "{\"name\":\"Wendy W.\",\"role\":\"manager\"}")
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
