import Essentials
import FoundationEssentials
import KeyedWorker
import Model
import ObjectStore
import Postgres
import TestSupport
import Testing

@testable import LocationFanOut

/// Copies of people's locations. Each ``LocationWorld/settle(meanwhile:)`` compares all copies with those computed from
/// all objects.
@Suite(.ownThreads) struct LocationHandlerTests {
    @Test func managersAndTeamsGetCopies() throws {
        var world = try LocationWorld()
        let (ana, ben) = (try world.person("ana"), try world.person("ben"))
        let (red, blue) = (try world.acme.makeTeam(members: [ana, ben]), try world.acme.makeTeam(members: [ana]))
        try world.settle()
        #expect(try world.paths(of: ana).isEmpty)
        try world.report(ana, 55.5)
        try world.settle()
        #expect(try world.paths(of: ana) == [.manager, .team(red), .team(blue)])
        #expect(try world.paths(of: ben).isEmpty)
        try world.report(ana, 56)
        try world.report(ben, 57)
        try world.settle()
        #expect(try world.paths(of: ben) == [.manager, .team(red)])
        #expect(try world.settleRepublished() == 0)
    }

    @Test func leavingATeamRemovesItsCopy() throws {
        var world = try LocationWorld()
        let ana = try world.person("ana")
        let (red, blue) = (try world.acme.makeTeam(members: [ana]), try world.acme.makeTeam(members: [ana]))
        try world.report(ana, 1)
        try world.settle()
        try world.acme.remove(ana, from: red)
        try world.settle()
        #expect(try world.paths(of: ana) == [.manager, .team(blue)])
        try world.report(ana, 2)
        try world.settle()
        try world.acme.add(ana, to: red)
        try world.settle()
        #expect(try world.paths(of: ana) == [.manager, .team(red), .team(blue)])
        #expect(try world.settleRepublished() == 0)
    }

    /// A late event of a membership whose compacted tombstone is missing: the id suffices.
    @Test func compactedTombstoneStillRemovesItsCopy() throws {
        var world = try LocationWorld()
        let ana = try world.person("ana")
        let red = try world.acme.makeTeam(members: [ana])
        try world.report(ana, 1)
        try world.settle()
        try world.acme.remove(ana, from: red)
        try world.acme.connection.run("DELETE FROM store.object WHERE deleted")
        var handler = LocationHandler()
        let late = EventSubject(realm: .common, kind: .membership, id: Membership.id(of: ana, in: red))
        var batch = WriteBatch(environment: world.acme.id)
        _ = try handler.decide(
            [.init(environment: world.acme.id, subject: late, origin: .event, attemptCount: 0)], in: world.acme.id,
            batch: &batch, on: &world.acme.connection)
        #expect(try batch.commit(on: &world.acme.connection).positions.count == 1)
        #expect(try world.paths(of: ana) == [.manager])
    }

    @Test func deletedTeamRemovesCopiesAndRestoredTeamAddsThem() throws {
        var world = try LocationWorld()
        let (ana, ben) = (try world.person("ana"), try world.person("ben"))
        let (red, blue) = (try world.acme.makeTeam(members: [ana, ben]), try world.acme.makeTeam(members: [ana]))
        for person in [ana, ben] { try world.report(person, 1) }
        try world.settle()
        try world.acme.delete(.team, red, in: .common)
        try world.settle()
        #expect(try world.paths(of: ana) == [.manager, .team(blue)])
        #expect(try world.paths(of: ben) == [.manager])
        _ = try world.acme.makeTeam(red)
        try world.settle()
        #expect(try world.paths(of: ben) == [.manager, .team(red)])
        #expect(try world.settleRepublished() == 0)
    }

    @Test func teamMayArriveAfterItsMemberships() throws {
        var world = try LocationWorld()
        let (ana, red) = (try world.person("ana"), UUID())
        try world.acme.add(ana, to: red)
        try world.report(ana, 1)
        try world.settle()
        #expect(try world.paths(of: ana) == [.manager])
        _ = try world.acme.makeTeam(red)
        try world.settle()
        #expect(try world.paths(of: ana) == [.manager, .team(red)])
    }

    @Test func removedPersonHasNoCopies() throws {
        var world = try LocationWorld()
        let ana = try world.person("ana")
        let red = try world.acme.makeTeam(members: [ana])
        try world.report(ana, 1)
        try world.settle()
        try world.acme.delete(.person, ana, in: .common)
        try world.settle()
        #expect(try world.paths(of: ana).isEmpty)
        try world.report(ana, 2)
        try world.settle()
        #expect(try world.paths(of: ana).isEmpty)
        try world.put(.person, ana, #"{"name":"ana"}"#, in: .common)
        try world.settle()
        #expect(try world.paths(of: ana) == [.manager, .team(red)])
    }

    @Test func deletedLocationHasNoCopies() throws {
        var world = try LocationWorld()
        let ana = try world.person("ana")
        let red = try world.acme.makeTeam(members: [ana])
        for latitude in [1.0, 2] {
            try world.report(ana, latitude)
            try world.settle()
            #expect(try world.paths(of: ana) == [.manager, .team(red)])
            try world.stopReporting(ana)
            try world.settle()
            #expect(try world.paths(of: ana).isEmpty)
        }
        #expect(try world.settleRepublished() == 0)
    }

    /// Devices choose ids: a location counts only in its person's own realm, under its person's id.
    @Test func locationUnderAForeignIDIsIgnored() throws {
        var world = try LocationWorld()
        let (ana, ben) = (try world.person("ana"), try world.person("ben"))
        _ = try world.acme.makeTeam(members: [ana, ben])
        try world.report(ana, 1)
        for id in [ana, UUID()] {
            try world.put(.location, id, #"{"latitude":80,"longitude":8}"#, in: try world.own(ben))
        }
        // A person who never logged in has no realm of their own.
        let carl = UUID()
        try world.put(.person, carl, #"{"name":"carl"}"#, in: .common)
        try world.put(.location, carl, #"{"latitude":80,"longitude":8}"#, in: try .user("carl@example.com"))
        try world.settle()
        #expect(try world.paths(of: ben).isEmpty && world.paths(of: carl).isEmpty)
        #expect(world.dead.isEmpty)
        // It is not part of any decision.
        #expect(world.missedCount == 0)
    }

    /// An invalid object is dead-lettered with its reason; it has no copies and does not block others.
    @Test func unreadableObjectIsDeadLetteredWithReason() throws {
        var world = try LocationWorld()
        let (ana, ben, cora) = (try world.person("ana"), try world.person("ben"), try world.person("cora"))
        let red = try world.acme.makeTeam(members: [ana, ben, cora])
        for person in [ana, ben, cora] { try world.report(person, 1) }
        try world.settle()
        try world.put(.location, ana, #"{"latitude":"north","longitude":1}"#, in: try world.own(ana))
        try world.put(.location, ben, #"{"latitude":91,"longitude":1}"#, in: try world.own(ben))
        let garbage = Membership.id(of: cora, in: red)
        try world.put(.membership, garbage, #"{"person":7}"#, in: .common)
        let foreign = Membership.id(of: cora, in: UUID())
        try world.put(
            .membership, foreign, "{\"person\":\"\(cora.text)\",\"team\":\"\(red.text)\"}", in: .common)
        try world.settle()
        #expect(try world.paths(of: ana).isEmpty && world.paths(of: ben).isEmpty)
        #expect(try world.paths(of: cora) == [.manager])
        func reason(_ realm: RealmPath, _ kind: Kind, _ id: UUID) -> String {
            world.dead[EventSubject(realm: realm, kind: kind, id: id)] ?? "not dead-lettered"
        }
        #expect(world.dead.count == 4)
        #expect(
            reason(try world.own(ana), .location, ana).hasPrefix("Location \(ana.text) cannot be decoded: latitude"))
        #expect(
            reason(try world.own(ben), .location, ben)
                == "Location \(ben.text): 'latitude' must be between -90 and 90 degrees")
        #expect(
            reason(.common, .membership, garbage).hasPrefix("Membership \(garbage.text) cannot be decoded: person"))
        #expect(reason(.common, .membership, foreign).contains("does not match its person and team"))
        try world.report(ana, 2)
        try world.acme.add(cora, to: red)
        try world.settle()
        #expect(try world.paths(of: ana) == [.manager, .team(red)])
        #expect(try world.paths(of: cora) == [.manager, .team(red)])
    }

    /// A membership's id has half of each id. People who share these halves are distinguished.
    @Test func idsWithEqualHalvesAreDistinguished() throws {
        var world = try LocationWorld()
        func id(_ first: UInt8, _ last: UInt8) -> UUID {
            UUID(uuid: (1, 1, 1, 1, 1, 1, 1, 1, last, 2, 2, 2, 2, 2, 2, first))
        }
        let (ana, ben) = (try world.person("ana", id(1, 1)), try world.person("ben", id(2, 2)))
        let red = try world.acme.makeTeam(
            UUID(uuid: (1, 0, 0, 0, 0, 0, 0, 0, 9, 9, 9, 9, 9, 9, 9, 9)), members: [ana])
        for person in [ana, ben] { try world.report(person, 1) }
        try world.settle()
        #expect(try world.paths(of: ana) == [.manager, .team(red)] && world.paths(of: ben) == [.manager])
        // The same membership id for both teams, and for both people.
        let blue = try world.acme.makeTeam(UUID(uuid: (2, 0, 0, 0, 0, 0, 0, 0, 9, 9, 9, 9, 9, 9, 9, 9)))
        try world.acme.add(ben, to: blue)
        try world.settle()
        #expect(try world.paths(of: ana) == [.manager] && world.paths(of: ben) == [.manager, .team(blue)])
        try world.acme.remove(ben, from: blue)
        try world.settle()
        #expect(try world.paths(of: ben) == [.manager])
    }
}
