import FoundationEssentials
import Model
import ObjectStore
import Postgres
import TestSupport
import Testing

@testable import TaskFanOut

/// Objects in `/common` of a deleted team or person.
@Suite(.ownThreads) struct DeletedReferencesTests {
    @Test func deletedTeamLosesItsMemberships() throws {
        var world = try TaskWorld()
        let people = try (0..<5).map { try world.person("p\($0)") }
        let (red, blue) = (try world.acme.makeTeam(members: people), try world.acme.makeTeam(members: people))
        try world.settle()
        try world.acme.delete(.team, red, in: .common)
        try world.settle()
        #expect(try world.memberships() == Set(people.map { Membership.id(of: $0, in: blue) }))
        #expect(try world.settleRepublished() == 0)
    }

    @Test func deletedPersonLosesMembershipsAndLookup() throws {
        var world = try TaskWorld()
        let (ana, bo) = (try world.person("ana"), try world.person("bo"))
        let teams = [try world.acme.makeTeam(members: [ana, bo]), try world.acme.makeTeam(members: [ana, bo])]
        for (person, name) in [(ana, "ana"), (bo, "bo")] {
            try world.put(
                .personLookup, person, "{\"name\":\"\(name)\",\"email\":\"\(name)@example.com\"}", in: .common)
        }
        try world.settle()
        try world.acme.delete(.person, ana, in: .common)
        try world.settle()
        #expect(try world.memberships() == Set(teams.map { Membership.id(of: bo, in: $0) }))
        #expect(try world.live(.personLookup) == [bo])
        #expect(try world.settleRepublished() == 0)
    }

    /// A manager who was offline adds a member to a team that another manager has deleted.
    @Test(arguments: [Kind.team, .person]) func membershipWrittenAfterTheDeletionIsRemoved(kind: Kind) throws {
        var world = try TaskWorld()
        let ana = try world.person("ana")
        let team = try world.acme.makeTeam()
        try world.settle()
        try world.acme.delete(kind, kind == .team ? team : ana, in: .common)
        try world.settle()
        try world.acme.add(ana, to: team)
        try world.settle()
        #expect(try world.memberships().isEmpty)
    }

    /// An integration writes the team again before its memberships are removed.
    @Test func restoredTeamKeepsItsMemberships() throws {
        var world = try TaskWorld()
        let ana = try world.person("ana")
        let team = try world.acme.makeTeam(members: [ana])
        try world.settle()
        try world.acme.delete(.team, team, in: .common)
        let (common, environment) = (try world.acme.realm(.common), world.acme.id)
        try world.settle { connection in
            var batch = WriteBatch(environment: environment)
            batch.put(
                ObjectKey(realm: common, kind: .team, id: team), try CanonicalJSON(#"{"name":"team"}"#), decision: 0)
            _ = try batch.commit(on: &connection)
        }
        #expect(try world.memberships() == [Membership.id(of: ana, in: team)])
    }

    /// A lost table of people does not remove memberships and teams.
    @Test func membershipsOfMissingPeopleAndTeamsStay() throws {
        var world = try TaskWorld()
        let (ana, bo) = (try world.person("ana"), try world.person("bo"))
        let (red, blue) = (try world.acme.makeTeam(members: [ana, bo]), try world.acme.makeTeam(members: [bo]))
        try world.settle()
        let before = try world.memberships()
        try world.acme.connection.run("DELETE FROM store.object WHERE id IN (\(ana), \(blue))")
        #expect(try world.settleRepublished() == 0)
        #expect(try world.memberships() == before && before.contains(Membership.id(of: ana, in: red)))
    }
}

extension TaskWorld {
    mutating func memberships() throws -> Set<UUID> { try live(.membership) }

    /// Returns the ids of the objects of a kind in `/common`.
    fileprivate mutating func live(_ kind: Kind) throws -> Set<UUID> {
        Set(
            try acme.connection.run("SELECT id FROM store.object WHERE kind = \(kind) AND NOT deleted")
                .decode(UUID.self))
    }
}
