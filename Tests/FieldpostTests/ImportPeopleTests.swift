import Essentials
import Foundation
import Model
import Postgres
import TestSupport
import Testing

@testable import Fieldpost

/// The rules for devices apply to `fieldpost import objects`; permitted exceptions are reported.
@Suite(.ownThreads) struct ImportPeopleTests {
    private typealias World = ImportFixture

    private static func person(_ id: UUID, _ email: String) -> String {
        World.line("/common", .person, id, #"{"name": "N"}"#, more: #""email": "\#(email)", "#)
    }

    private static func share(_ item: UUID, with recipient: UUID, in realm: String) -> String {
        World.line(
            realm, .sharedItem, SharedItem.id(of: item, with: recipient),
            #"{"kind": "Note", "item": "\#(item)", "recipient": "\#(recipient)"}"#)
    }

    private static func lookup(_ id: UUID, _ email: String) -> String {
        World.line("/common", .personLookup, id, #"{"name": "N", "email": "\#(email)"}"#)
    }

    @Test func linesThatNoDeviceMayWriteAreRejected() throws {
        let (world, ana, bo, note, unknown) = (try World(), UUID(), UUID(), UUID(), UUID())
        let realm = "/users/ana@acme.example"
        let location = #"{"latitude": 1, "longitude": 2}"#
        let result = try world.bring(
            "objects",
            [
                Self.person(ana, "ana@acme.example"), Self.person(bo, "bo@acme.example"),
                World.line(realm, .note, note, #"{"title": "T"}"#),
                Self.share(note, with: ana, in: realm), Self.share(note, with: bo, in: realm),
                Self.share(note, with: unknown, in: realm), Self.lookup(ana, "bo@acme.example"),
                Self.lookup(bo, "bo@acme.example"), Self.lookup(unknown, "ana@acme.example"),
                World.line(realm, .location, bo, location), World.line(realm, .location, ana, location),
            ])
        #expect(
            result.errors.split(separator: "\n").map(String.init) == [
                "line 4: 'recipient' must be another person than the owner",
                "line 6: 'recipient' must be the id of a Person; /common has no Person \(unknown.text)",
                "line 7: 'email' must be the person's own: ana@acme.example",
                "line 9: 'id' must be the id of a Person; /common has no Person \(unknown.text)",
                "line 10: the id of a Location must be that of its person, \(ana.text)",
                "fieldpost: 5 of 11 lines were rejected",
            ])
        #expect(result.status == 1)
        #expect(try world.objects().count == 6)
    }

    private static func membership(_ person: UUID, _ team: UUID) -> String {
        World.line(
            "/common", .membership, Membership.id(of: person, in: team),
            #"{"person": "\#(person)", "team": "\#(team)"}"#)
    }

    /// The order in a file is irrelevant; a stream has the team and the person first.
    @Test func membershipRequiresTeamAndPerson() throws {
        let (world, ana, team, unknown) = (try World(), UUID(), UUID(), UUID())
        let lines = [
            Self.membership(ana, team), Self.membership(ana, unknown), Self.membership(unknown, team),
            Self.person(ana, "ana@acme.example"), World.line("/common", .team, team, #"{"name": "T"}"#),
        ]
        let file = try world.bring("objects", lines)
        #expect(
            file.errors.split(separator: "\n").map(String.init) == [
                "line 2: 'team' must be the id of a Team; /common has no Team \(unknown.text)",
                "line 3: 'person' must be the id of a Person; /common has no Person \(unknown.text)",
                "fieldpost: 2 of 5 lines were rejected",
            ])
        #expect(try world.objects().count == 3)
        // A new run accepts references to objects of an earlier run, but not to deleted ones.
        #expect(try world.bring("objects", [lines[0]]).status == 0)
        try world.delete(.team, team)
        #expect(try world.bring("objects", [lines[0]]).errors.hasPrefix("line 1: 'team' must be"))
        let stream = try World()
        try withFolder { folder in
            let pipe = folder.appendingPathComponent("pipe")
            try #require(unsafe mkfifo(pipe.path, 0o600) == 0)
            World.feed(pipe, [lines[0], lines[4], lines[3], lines[0]])
            let result = try stream.run("objects", pipe.path)
            #expect(result.errors.split(separator: "\n").count == 2, "\(result.errors)")
            #expect(result.errors.hasPrefix("line 1: 'person' must be"), "\(result.errors)")
        }
        #expect(try stream.objects().count == 3)
    }

    /// An import may precede its people, and may name people who never log in. Each address is reported once.
    @Test func linesThatOnlyImportMayWriteAreReported() throws {
        let (world, eve) = (try World(), UUID())
        let note = #"{"title": "T"}"#
        let lines =
            [Self.person(eve, "eve@elsewhere.example")]
            + (0..<3).map { _ in World.line("/users/nobody@acme.example", .note, UUID(), note) }
            + [World.line("/users/eve@elsewhere.example", .note, UUID(), note)]
        let result = try world.bring("objects", lines)
        #expect(result.status == 0)
        #expect(
            result.errors.split(separator: "\n").map(String.init) == [
                "warning: line 1: eve@elsewhere.example is added, but cannot log in: its domain is not the "
                    + "environment's",
                "warning: line 2: no person has the address nobody@acme.example: the realm is inaccessible until "
                    + "one is added",
            ])
        #expect(try world.objects().count == 5)
        let again = try world.bring("objects", lines, ["--json"])
        let figures = try World.figures(again)
        #expect(figures["unchanged"] == 5 && figures["warned"] == 2 && figures["refused"] == 0)
        #expect(again.output.contains("nobody@acme.example"))
        // A person who is added later owns the realm.
        let later = try world.bring("objects", [Self.person(UUID(), "nobody@acme.example")] + lines)
        #expect(later.errors.split(separator: "\n").count == 1)
    }
}
