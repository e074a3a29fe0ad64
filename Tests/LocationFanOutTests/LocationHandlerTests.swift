import Essentials
import FoundationEssentials
import KeyedWorker
import Model
import ObjectStore
import Postgres
import TestSupport
import Testing

@testable import LocationFanOut

/// Who sees where somebody is, by what people do. Each ``LocationWorld/settle(meanwhile:)`` compares all copies with a
/// naive reading of all objects.
@Suite(.ownThreads) struct LocationHandlerTests {
    @Test func managersAndTeamsSeeIt() throws {
        var world = try LocationWorld()
        let (ana, ben) = (try world.person("ana"), try world.person("ben"))
        let (red, blue) = (try world.acme.makeTeam(members: [ana, ben]), try world.acme.makeTeam(members: [ana]))
        try world.settle()
        #expect(try world.places(of: ana).isEmpty)
        try world.tell(ana, 55.5)
        try world.settle()
        #expect(try world.places(of: ana) == [.manager, .team(red), .team(blue)])
        #expect(try world.places(of: ben).isEmpty)
        try world.tell(ana, 56)
        try world.tell(ben, 57)
        try world.settle()
        #expect(try world.places(of: ben) == [.manager, .team(red)])
        #expect(try world.settleAgain() == 0)
    }

    @Test func whoLeavesATeamIsSeenThereNoMore() throws {
        var world = try LocationWorld()
        let ana = try world.person("ana")
        let (red, blue) = (try world.acme.makeTeam(members: [ana]), try world.acme.makeTeam(members: [ana]))
        try world.tell(ana, 1)
        try world.settle()
        try world.acme.remove(ana, from: red)
        try world.settle()
        #expect(try world.places(of: ana) == [.manager, .team(blue)])
        try world.tell(ana, 2)
        try world.settle()
        try world.acme.add(ana, to: red)
        try world.settle()
        #expect(try world.places(of: ana) == [.manager, .team(red), .team(blue)])
        #expect(try world.settleAgain() == 0)
    }

    /// A late event of a membership whose tombstone was compacted away: its id says all.
    @Test func aTombstoneThatIsGoneEndsItsCopyAllTheSame() throws {
        var world = try LocationWorld()
        let ana = try world.person("ana")
        let red = try world.acme.makeTeam(members: [ana])
        try world.tell(ana, 1)
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
        #expect(try world.places(of: ana) == [.manager])
    }

    @Test func aTeamThatGoesHidesItsMembersAndThenShowsThemAgain() throws {
        var world = try LocationWorld()
        let (ana, ben) = (try world.person("ana"), try world.person("ben"))
        let (red, blue) = (try world.acme.makeTeam(members: [ana, ben]), try world.acme.makeTeam(members: [ana]))
        for person in [ana, ben] { try world.tell(person, 1) }
        try world.settle()
        try world.acme.delete(.team, red, in: .common)
        try world.settle()
        #expect(try world.places(of: ana) == [.manager, .team(blue)])
        #expect(try world.places(of: ben) == [.manager])
        _ = try world.acme.makeTeam(red)
        try world.settle()
        #expect(try world.places(of: ben) == [.manager, .team(red)])
        #expect(try world.settleAgain() == 0)
    }

    @Test func aTeamMayComeAfterItsMemberships() throws {
        var world = try LocationWorld()
        let (ana, red) = (try world.person("ana"), UUID())
        try world.acme.add(ana, to: red)
        try world.tell(ana, 1)
        try world.settle()
        #expect(try world.places(of: ana) == [.manager])
        _ = try world.acme.makeTeam(red)
        try world.settle()
        #expect(try world.places(of: ana) == [.manager, .team(red)])
    }

    @Test func whoIsNoPersonAnyMoreIsSeenByNobody() throws {
        var world = try LocationWorld()
        let ana = try world.person("ana")
        let red = try world.acme.makeTeam(members: [ana])
        try world.tell(ana, 1)
        try world.settle()
        try world.acme.delete(.person, ana, in: .common)
        try world.settle()
        #expect(try world.places(of: ana).isEmpty)
        try world.tell(ana, 2)
        try world.settle()
        #expect(try world.places(of: ana).isEmpty)
        try world.put(.person, ana, #"{"name":"ana"}"#, in: .common)
        try world.settle()
        #expect(try world.places(of: ana) == [.manager, .team(red)])
    }

    @Test func whoStopsTellingItIsSeenByNobody() throws {
        var world = try LocationWorld()
        let ana = try world.person("ana")
        let red = try world.acme.makeTeam(members: [ana])
        for latitude in [1.0, 2] {
            try world.tell(ana, latitude)
            try world.settle()
            #expect(try world.places(of: ana) == [.manager, .team(red)])
            try world.stopTelling(ana)
            try world.settle()
            #expect(try world.places(of: ana).isEmpty)
        }
        #expect(try world.settleAgain() == 0)
    }

    /// Ids are the devices' own choice: a position counts in its person's own realm, under its person's id.
    @Test func aPositionUnderAForeignIDIsNobodys() throws {
        var world = try LocationWorld()
        let (ana, ben) = (try world.person("ana"), try world.person("ben"))
        _ = try world.acme.makeTeam(members: [ana, ben])
        try world.tell(ana, 1)
        for id in [ana, UUID()] {
            try world.put(.location, id, #"{"latitude":80,"longitude":8}"#, in: try world.own(ben))
        }
        // One who never logged in has no realm of their own.
        let carl = UUID()
        try world.put(.person, carl, #"{"name":"carl"}"#, in: .common)
        try world.put(.location, carl, #"{"latitude":80,"longitude":8}"#, in: try .user("carl@example.com"))
        try world.settle()
        #expect(try world.places(of: ben).isEmpty && world.places(of: carl).isEmpty)
        #expect(world.dead.isEmpty)
        // And nothing waits for it: it is no part of any decision.
        #expect(world.missedCount == 0)
    }

    /// What cannot be read waits for a person, who is told why; it shows nobody anywhere, and is in nobody's way.
    @Test func garbageIsTold() throws {
        var world = try LocationWorld()
        let (ana, ben, cora) = (try world.person("ana"), try world.person("ben"), try world.person("cora"))
        let red = try world.acme.makeTeam(members: [ana, ben, cora])
        for person in [ana, ben, cora] { try world.tell(person, 1) }
        try world.settle()
        try world.put(.location, ana, #"{"latitude":"north","longitude":1}"#, in: try world.own(ana))
        try world.put(.location, ben, #"{"latitude":91,"longitude":1}"#, in: try world.own(ben))
        let garbage = Membership.id(of: cora, in: red)
        try world.put(.membership, garbage, #"{"person":7}"#, in: .common)
        let foreign = Membership.id(of: cora, in: UUID())
        try world.put(
            .membership, foreign, "{\"person\":\"\(cora.text)\",\"team\":\"\(red.text)\"}", in: .common)
        try world.settle()
        #expect(try world.places(of: ana).isEmpty && world.places(of: ben).isEmpty)
        #expect(try world.places(of: cora) == [.manager])
        func reason(_ realm: RealmPath, _ kind: Kind, _ id: UUID) -> String {
            world.dead[EventSubject(realm: realm, kind: kind, id: id)] ?? "it is not dead"
        }
        #expect(world.dead.count == 4)
        #expect(reason(try world.own(ana), .location, ana).hasPrefix("Location \(ana.text) does not decode: latitude"))
        #expect(
            reason(try world.own(ben), .location, ben)
                == "Location \(ben.text): 'latitude' must be between -90 and 90 degrees")
        #expect(
            reason(.common, .membership, garbage).hasPrefix("Membership \(garbage.text) does not decode: person"))
        #expect(reason(.common, .membership, foreign).contains("is not that of its person and team"))
        try world.tell(ana, 2)
        try world.acme.add(cora, to: red)
        try world.settle()
        #expect(try world.places(of: ana) == [.manager, .team(red)])
        #expect(try world.places(of: cora) == [.manager, .team(red)])
    }

    /// A membership's id has half of each id: whoever shares these halves is not mistaken for the other.
    @Test func idsThatBeginOrEndTheSameAreKeptApart() throws {
        var world = try LocationWorld()
        func id(_ first: UInt8, _ last: UInt8) -> UUID {
            UUID(uuid: (1, 1, 1, 1, 1, 1, 1, 1, last, 2, 2, 2, 2, 2, 2, first))
        }
        let (ana, ben) = (try world.person("ana", id(1, 1)), try world.person("ben", id(2, 2)))
        let red = try world.acme.makeTeam(
            UUID(uuid: (1, 0, 0, 0, 0, 0, 0, 0, 9, 9, 9, 9, 9, 9, 9, 9)), members: [ana])
        for person in [ana, ben] { try world.tell(person, 1) }
        try world.settle()
        #expect(try world.places(of: ana) == [.manager, .team(red)] && world.places(of: ben) == [.manager])
        // The one membership that both teams, and both people, can have.
        let blue = try world.acme.makeTeam(UUID(uuid: (2, 0, 0, 0, 0, 0, 0, 0, 9, 9, 9, 9, 9, 9, 9, 9)))
        try world.acme.add(ben, to: blue)
        try world.settle()
        #expect(try world.places(of: ana) == [.manager] && world.places(of: ben) == [.manager, .team(blue)])
        try world.acme.remove(ben, from: blue)
        try world.settle()
        #expect(try world.places(of: ben) == [.manager])
    }
}
