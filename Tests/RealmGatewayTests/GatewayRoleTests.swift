import Access
import Foundation
import HTTPClient
import Model
import Postgres
import TestSupport
import Testing

@testable import RealmGateway

/// Changes of roles over HTTP: every caller, every role before and after, of others and of themselves.
@Suite(.ownThreads) struct GatewayRoleTests {
    private struct Person: Sendable {
        let device: GatewayDevice
        let id: UUID
        let role: Role
    }

    /// One change of a role.
    private struct Change: Sendable {
        let name: String
        let caller: GatewayDevice
        let standing: AccessPrincipal
        let target: Person
        let isOwn: Bool
        let given: Role

        /// Returns the expected result of a put or patch of the role alone.
        func expected(_ operation: Mutation.Operation) -> String {
            let mayPatch = PermissionTable.mayMake(given, of: target.role, isOwn: isOwn, standing)
            let object = WriteTarget(.person, isOwn: isOwn, roleBefore: target.role, roleAfter: given)
            let problem = Permissions.objection(
                to: operation, object, fields: ["role"], in: .common, Access(standing))
            switch (operation, standing) {
            case (.patch, _), (.put, .integration): #expect((problem == nil) == mayPatch)
            case (.put, .person), (.delete, _): #expect(problem != nil)
            }
            #expect(
                problem?.code
                    == PermissionTable.problem(of: operation, object, fields: ["role"], in: .common, Access(standing)))
            return problem?.code.rawValue ?? "accepted"
        }
    }

    @Test func everyChangeOfARoleHoldsOverHTTP() async throws {
        try await withGateway { fixture in
            let targets = try await people("target", fixture)
            let callers = try await people("caller", fixture)
            let books = GatewayDevice(fixture, bearer: try fixture.addIntegration("books"))
            var changes: [Change] = []
            for given in Role.allCases {
                for target in targets {
                    for caller in callers {
                        changes.append(
                            Change(
                                name: caller.role.rawValue, caller: caller.device, standing: .person(caller.role),
                                target: target, isOwn: false, given: given))
                    }
                    changes.append(
                        Change(
                            name: "books", caller: books, standing: .integration, target: target, isOwn: false,
                            given: given))
                }
                for caller in callers {
                    changes.append(
                        Change(
                            name: caller.role.rawValue, caller: caller.device, standing: .person(caller.role),
                            target: caller, isOwn: true, given: given))
                }
            }
            // The compiler takes seconds for such a sum in an expectation.
            let (count, patchCount) = (3 * (3 * 4 + 3), 9 + 9 + 4)
            #expect(changes.count == count)
            var accepted: [Mutation.Operation: Int] = [:]
            for change in changes {
                for operation in [Mutation.Operation.put, .patch] where try await make(change, operation, fixture) {
                    accepted[operation, default: 0] += 1
                }
            }
            // An admin and an integration: any of three roles to any; a manager: two to two.
            #expect(accepted == [.patch: patchCount, .put: 9])
        }
    }

    /// An admin, a manager and a worker.
    private func people(_ name: String, _ fixture: GatewayFixture) async throws -> [Person] {
        var people: [Person] = []
        for role in Role.allCases {
            let email = "\(name)-\(role.rawValue)@example.com"
            let device = try await fixture.device(email, role: role)
            people.append(Person(device: device, id: try fixture.person(email), role: role))
        }
        return people
    }

    /// Requests a change, checks its effect, and reverts it.
    ///
    /// - Returns: Whether it was accepted.
    private func make(
        _ change: Change, _ operation: Mutation.Operation, _ fixture: GatewayFixture
    ) async throws -> Bool {
        let (target, expected) = (change.target, change.expected(operation))
        let comment: Comment = "\(change.name) \(operation) \(change.isOwn) \(target.role) \(change.given)"
        let audited = try auditCount(fixture)
        let mutation = await change.caller.mutation(
            operation.rawValue, target.id, "{\"role\":\"\(change.given.rawValue)\"}", kind: "Person", in: "/common")
        let result = try #require(try await change.caller.send([mutation]).results.first)
        #expect(result.prefix { $0 != " " } == expected, comment)
        let isAccepted = expected == "accepted"
        let after = isAccepted ? change.given : target.role
        #expect(try stored(target, fixture) == after.rawValue, comment)
        #expect(try await isManager(target) == after.isManager, comment)
        #expect(try auditCount(fixture) - audited == (after == target.role ? 0 : 1), comment)
        if isAccepted { try fixture.set(target.role, of: target.device.email) }
        return isAccepted
    }

    private func stored(_ person: Person, _ fixture: GatewayFixture) throws -> String? {
        let key = person.id
        return try fixture.withDatabase { connection in
            let rows = try connection.run(
                """
                SELECT o.fields->>'role' FROM realm.object o
                JOIN realm.realm r ON (r.environment_id, r.id) = (o.environment_id, o.realm_id)
                WHERE r.path = '/common' AND o.kind = 'Person' AND o.id = \(key)
                """)
            return try rows.first { _ in true }?.optional(0, as: String.self)
        }
    }

    /// Returns whether the person now gets the managers' realms.
    private func isManager(_ person: Person) async throws -> Bool {
        let response = GatewayResponse(
            try await person.device.fixture.client.send(person.device.request("GET", "/v1/realms")))
        let realms = try #require(response.json["realms"] as? [[String: Any]])
        return realms.contains { $0["realm"] as? String == "/manager" }
    }

    private func auditCount(_ fixture: GatewayFixture) throws -> Int64 {
        try fixture.withDatabase { connection in
            let rows = try connection.run("SELECT count(*) FROM access.audit WHERE action = 'role.changed'")
            return try #require(rows.first { _ in true }).value(0)
        }
    }
}
