import DeviceClient
import Essentials
import Foundation
import Model
import TestSupport
import Testing

@testable import Workbench

/// The direct evaluation of access, with which services are compared: it finds each injected error, and no other.
@Suite(.ownThreads) struct FieldworkReadingTests {
    /// Two people, a note that one shares with the other, and a task of their team.
    private struct World {
        let ana = UUID()
        let ben = UUID()
        let note = UUID()
        let task = UUID()
        let team = UUID()
        let otherTeam = UUID()
        var snapshot = EnvironmentSnapshot()

        var share: UUID { Share.id(of: ana, with: ben) }
        var shared: RealmPath { .share(share) }

        static func own(_ name: String) -> RealmPath { RealmPath("/users/\(name)@example.com") ?? .common }

        init() {
            snapshot.emails = [ana: "ana@example.com", ben: "ben@example.com"]
            for person in [ana, ben] {
                put(.person, person, "{\"name\":\"p\"}", in: .common)
                put(
                    .membership, Membership.id(of: person, in: team),
                    "{\"person\":\"\(person.text)\",\"team\":\"\(team.text)\"}", in: .common)
            }
            for team in [team, otherTeam] { put(.team, team, "{\"name\":\"\(team.text)\"}", in: .common) }
            put(.note, note, "{\"title\":\"n\"}", in: Self.own("ana"))
            put(
                .sharedItem, SharedItem.id(of: note, with: ben),
                "{\"kind\":\"Note\",\"item\":\"\(note.text)\",\"recipient\":\"\(ben.text)\"}", in: Self.own("ana"))
            put(.note, note, "{\"title\":\"n\"}", in: shared)
            putShare(share, owner: ana, in: [shared, Self.own("ana"), Self.own("ben")])
            for path in [RealmPath.manager, .team(team)] { putTask(assignee: ana, in: path) }
        }

        mutating func put(_ kind: Kind, _ id: UUID, _ fields: String, in path: RealmPath) {
            let object = DeviceObject(position: 1, fields: Array(fields.utf8))
            snapshot.realms[path, default: [:]][ObjectID(kind: kind, id: id)] = object
        }

        mutating func remove(_ kind: Kind, _ id: UUID, in path: RealmPath) {
            snapshot.realms[path]?[ObjectID(kind: kind, id: id)] = nil
        }

        mutating func putShare(_ id: UUID, owner: UUID, in paths: [RealmPath]) {
            let fields = "{\"owner\":\"\(owner.text)\",\"recipient\":\"\(ben.text)\"}"
            for path in paths { put(.share, id, fields, in: path) }
        }

        mutating func putTask(assignee: UUID, in path: RealmPath) {
            let fields = "{\"title\":\"t\",\"team\":\"\(team.text)\",\"assignee\":\"\(assignee.text)\"}"
            put(.fieldTask, task, fields, in: path)
        }

        var differences: [String] { FieldworkReading(snapshot).differences() }
    }

    @Test func correctSnapshotHasNoDifferences() {
        #expect(World().differences.isEmpty)
    }

    @Test func shareNeedsTwoExistingPeople() {
        var world = World()
        let unknownOwner = UUID()
        let share = Share.id(of: unknownOwner, with: world.ben)
        world.putShare(share, owner: unknownOwner, in: [.share(share), World.own("ben")])
        #expect(world.differences == ["/shares/\(share.text) has a Share with an unknown person"])
    }

    @Test func aShareHasTheIDOfItsTwo() {
        var world = World()
        let share = UUID()
        world.putShare(share, owner: world.ana, in: [.share(share), World.own("ana"), World.own("ben")])
        #expect(world.differences == ["/shares/\(share.text) has a Share whose id is not that of its two people"])
    }

    @Test(arguments: ["ana", "ben"]) func bothHaveAReferenceToTheirShare(name: String) {
        var world = World()
        world.remove(.share, world.share, in: World.own(name))
        #expect(world.differences.count == 1)
        #expect(world.differences.first?.hasPrefix("missing: \(World.own(name)) Share \(world.share.text)") == true)
    }

    @Test func extraCopyIsReported() {
        var world = World()
        let extra = UUID()
        world.put(.note, extra, "{\"title\":\"extra\"}", in: world.shared)
        #expect(world.differences.count == 1)
        #expect(world.differences.first?.hasPrefix("not to be there: \(world.shared) Note \(extra.text)") == true)
    }

    /// The copy that should be there is missing, and the one that is there should not be.
    @Test func differingCopyIsReported() {
        var world = World()
        world.put(.note, world.note, "{\"title\":\"old\"}", in: world.shared)
        let name = "\(world.shared) Note \(world.note.text)"
        #expect(
            world.differences == [
                "missing: \(name) {\"title\":\"n\"}", "not to be there: \(name) {\"title\":\"old\"}",
            ])
    }

    @Test func copyInFormerTeamIsReported() {
        var world = World()
        world.putTask(assignee: world.ana, in: .team(world.otherTeam))
        #expect(world.differences.count == 1)
        let team = RealmPath.team(world.otherTeam)
        #expect(world.differences.first?.hasPrefix("not to be there: \(team) FieldTask") == true)
    }

    @Test(arguments: [true, false]) func assigneeOutsideTheTeamIsReported(isThere: Bool) {
        var world = World()
        let outsider = UUID()
        if isThere { world.put(.person, outsider, "{\"name\":\"s\"}", in: .common) }
        for path in [RealmPath.manager, .team(world.team)] { world.putTask(assignee: outsider, in: path) }
        #expect(world.differences == ["the task \(world.task.text) has an assignee who cannot do it"])
    }
}
