import Access
import BackendConnections
import Essentials
import Foundation
import Model
import ObjectStore
import Postgres
import TestSupport
import Testing

@testable import RealmGateway

/// References to objects of `/common` that must exist when the referring object is put.
@Suite(.ownThreads) struct GatewayReferenceTests {
    private static func pair(_ person: UUID, _ team: UUID) -> (id: UUID, fields: String) {
        (Membership.id(of: person, in: team), "{\"person\":\"\(person)\",\"team\":\"\(team)\"}")
    }

    private func put(_ person: UUID, _ team: UUID, by device: GatewayDevice) async -> String {
        let (id, fields) = Self.pair(person, team)
        return await device.mutation("put", id, fields, kind: "Membership", in: "/common")
    }

    private func team(_ op: String, _ team: UUID, by device: GatewayDevice) async -> String {
        let fields = op == "put" ? "{\"name\":\"\(team)\"}" : nil
        return await device.mutation(op, team, fields, kind: "Team", in: "/common")
    }

    private func codes(_ response: GatewayResponse) -> [String] {
        response.results.map { String($0.prefix { $0 != " " }) }
    }

    @Test(arguments: [false, true]) func membershipNeedsItsTeamAndItsPerson(isIntegration: Bool) async throws {
        try await withGateway { fixture in
            var device = try await fixture.device("manager@example.com", role: .manager)
            if isIntegration { device = GatewayDevice(fixture, bearer: try fixture.addIntegration("books")) }
            let (me, blue, red, gone) = (try fixture.person("manager@example.com"), UUID(), UUID(), UUID())
            try fixture.makeTeam(gone)
            try fixture.delete(.team, gone, in: .common)
            let first = try await device.send([
                await put(me, red, by: device), await put(me, gone, by: device),
                await team("put", red, by: device), await put(me, red, by: device),
                await put(UUID(), red, by: device), await team("put", blue, by: device),
                await team("delete", blue, by: device), await put(me, blue, by: device),
            ])
            #expect(
                codes(first) == [
                    "invalid-field", "invalid-field", "accepted", "accepted", "invalid-field", "accepted", "accepted",
                    "invalid-field",
                ])
            #expect(first.body.contains("'team' must be the id of a Team; /common has no Team \(gone.text)"))
            #expect(first.body.contains("'person' must be the id of a Person; /common has no Person "))
            // Accepted before, in another request.
            let later = try await device.send([await put(me, red, by: device), await team("delete", red, by: device)])
            #expect(codes(later) == ["accepted", "accepted"])
            let memberships = try fixture.stored("/common").keys.filter { $0.hasPrefix("Membership/") }
            #expect(memberships == ["Membership/\(Membership.id(of: me, in: red).text)"])
        }
    }

    @Test func repeatOfAMembershipKeepsItsFirstResult() async throws {
        try await withGateway { fixture in
            let device = try await fixture.device("manager@example.com", role: .manager)
            let (me, red, blue) = (try fixture.person("manager@example.com"), UUID(), UUID())
            try fixture.makeTeam(red)
            let mutations = [await put(me, red, by: device), await put(me, blue, by: device)]
            let first = try await device.send(mutations)
            #expect(codes(first) == ["accepted", "invalid-field"])
            try fixture.delete(.team, red, in: .common)
            try fixture.makeTeam(blue)
            #expect(try await device.send(mutations).results == first.results)
        }
    }

    /// Services remove the objects that refer to them by their tombstones.
    @Test func objectsPutAndDeletedInOneRequestLeaveTombstones() async throws {
        try await withGateway { fixture in
            let device = try await fixture.device("manager@example.com", role: .manager)
            _ = try await fixture.device("ben@example.com")
            let (me, ben) = (try fixture.person("manager@example.com"), try fixture.person("ben@example.com"))
            let (red, note, entry, realm) = (UUID(), UUID(), UUID(), await device.realm)
            let link = "{\"kind\":\"Note\",\"item\":\"\(note)\",\"recipient\":\"\(ben)\"}"
            let response = try await device.send([
                await team("put", red, by: device), await put(me, red, by: device),
                await device.mutation("put", note, "{\"title\":\"n\"}", kind: "Note"),
                await device.mutation("put", SharedItem.id(of: note, with: ben), link, kind: "SharedItem"),
                await device.mutation("put", entry, "{}"), await team("delete", red, by: device),
                await device.mutation("delete", note, kind: "Note"), await device.mutation("delete", entry),
            ])
            #expect(codes(response) == Array(repeating: "accepted", count: 8))
            let own = try #require(RealmPath(realm))
            for (kind, id, path) in [(Kind.team, red, RealmPath.common), (.note, note, own)] {
                let object = try fixture.object(ObjectKey(realm: try fixture.realm(path), kind: kind, id: id))
                #expect(object.isDeleted, "\(kind)")
                // Both mutations share its position.
                let (first, last) = kind == .team ? (0, 5) : (2, 6)
                let expected = "accepted \(object.position)"
                #expect(response.results[first] == expected && response.results[last] == expected, "\(kind)")
            }
            let entryCount: Int64 = try fixture.withDatabase {
                try $0.run("SELECT count(*) FROM store.object WHERE id = \(entry)")[0].value(0)
            }
            #expect(entryCount == 0)
        }
    }

    @Test func lookupNeedsItsPerson() async throws {
        try await withGateway { fixture in
            let ana = try await fixture.device("ana@example.com")
            let books = GatewayDevice(fixture, bearer: try fixture.addIntegration("books"))
            let (me, fields) = (try fixture.person("ana@example.com"), "{\"name\":\"A\",\"email\":\"ana@example.com\"}")
            func lookup(_ id: UUID, by device: GatewayDevice) async -> String {
                await device.mutation("put", id, fields, kind: "PersonLookup", in: "/common")
            }
            let existing = try await books.send([await lookup(me, by: books), await lookup(UUID(), by: books)])
            #expect(codes(existing) == ["accepted", "invalid-field"])
            try fixture.delete(.person, me, in: .common)
            let own = try await ana.send([
                await lookup(me, by: ana),
                await ana.mutation("put", me, "{\"name\":\"A\"}", kind: "Person", in: "/common"),
                await lookup(me, by: ana),
            ])
            #expect(codes(own) == ["invalid-field", "accepted", "accepted"])
        }
    }

    /// The manager's team is rejected while the role is revoked, and the membership that follows is sent after the role
    /// is granted again: without the check it was accepted, a membership of a team that never existed.
    @Test func membershipAfterARegainedRoleNeedsTheRejectedTeam() async throws {
        try await withGateway { fixture in
            let device = try await fixture.device("manager@example.com", role: .manager)
            let (me, red) = (try fixture.person("manager@example.com"), UUID())
            try fixture.set(.worker, of: "manager@example.com")
            #expect(codes(try await device.send([await team("put", red, by: device)])) == ["kind-not-allowed"])
            try fixture.set(.manager, of: "manager@example.com")
            #expect(codes(try await device.send([await put(me, red, by: device)])) == ["invalid-field"])
            #expect(try fixture.stored("/common").keys.allSatisfy { !$0.hasPrefix("Membership/") })
        }
    }

    /// A referenced object.
    enum Target: CaseIterable, Sendable { case team, person, recipient }

    /// A referenced object that is deleted between the decision and the commit causes a conflict.
    @Test(arguments: Target.allCases) func deletionBetweenDecisionAndCommitIsDetected(target: Target) async throws {
        try await withGateway { fixture in
            _ = try await fixture.device("manager@example.com", role: .manager)
            _ = try await fixture.device("ben@example.com")
            let ben = try fixture.person("ben@example.com")
            let (red, note, own) = (UUID(), UUID(), try RealmPath.user("manager@example.com"))
            try fixture.makeTeam(red)
            let realm = target == .recipient ? own : .common
            let (kind, pair): (Kind, (id: UUID, fields: String)) =
                target == .recipient
                ? (
                    .sharedItem,
                    (
                        SharedItem.id(of: note, with: ben),
                        "{\"kind\":\"Note\",\"item\":\"\(note)\",\"recipient\":\"\(ben)\"}"
                    )
                ) : (.membership, Self.pair(ben, red))
            let put = Mutation(operation: .put, kind: kind, id: pair.id, fields: Array(pair.fields.utf8))
            let problem = try fixture.withDatabase { connection in
                let caller = try fixture.caller("manager@example.com", on: &connection)
                let mutation = try UncommittedMutation(put, in: realm, by: caller, on: &connection)
                try fixture.delete(target == .team ? .team : .person, target == .team ? red : ben, in: .common)
                return try mutation.problemAfterConflict(on: &connection)
            }
            #expect(problem?.contains("/common has no ") == true)
        }
    }
}
