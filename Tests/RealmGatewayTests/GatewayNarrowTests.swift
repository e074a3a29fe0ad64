import Essentials
import Foundation
import HTTPClient
import Model
import ObjectStore
import TestSupport
import Testing

@testable import RealmGateway

/// `only`: a device that opens only the realms that it names.
@Suite(.ownThreads) struct GatewayNarrowTests {
    @Test func onlyNamedRealmsAreOpened() async throws {
        try await withGateway { fixture in
            let ana = try await fixture.device("ana@example.com")
            let (me, teams) = (try fixture.person("ana@example.com"), [UUID(), UUID(), UUID()])
            for team in teams {
                try fixture.makeTeam(team, members: team == teams[2] ? [] : [me])
                try fixture.put(.fieldTask, UUID(), "{\"title\":\"t\"}", in: .team(team))
            }
            let paths = teams.map { RealmPath.team($0).description }
            try await ana.sync()
            #expect(await ana.openRealms == [await ana.realm, "/common", paths[0], paths[1]])
            // The own realm that is named; another's team and a missing realm are closed as always.
            let nobodys = RealmPath.team(UUID()).description
            try await ana.sync(only: [paths[0], paths[2], nobodys, "/manager"])
            #expect(await ana.openRealms == [paths[0]])
            #expect(await ana.closed.sorted() == [paths[2], nobodys, "/manager"].sorted())
            let (shown, cursors) = (await ana.shown(paths[0]), await ana.cursors)
            #expect(shown.count == 1 && Set(cursors.keys) == [paths[0]])
            // It resumes from its cursor, and a realm that is named again is downloaded completely.
            let repeats = await ana.repeats.count
            try await ana.sync(only: [paths[0], "/common"])
            #expect(await ana.repeats.count == repeats)
            #expect(await ana.openRealms == [paths[0], "/common"])
            try await ana.sync()
            #expect(await ana.openRealms == [await ana.realm, "/common", paths[0], paths[1]])
        }
    }

    /// A realm with a cursor that is not in `only` is closed, permitted or not.
    @Test func realmWithCursorOutsideOnlyIsClosed() async throws {
        try await withGateway { fixture in
            let ana = try await fixture.device("ana@example.com")
            let (me, team) = (try fixture.person("ana@example.com"), UUID())
            try fixture.makeTeam(team, members: [me])
            try fixture.put(.fieldTask, UUID(), "{\"title\":\"t\"}", in: .team(team))
            let (path, mine) = (RealmPath.team(team).description, await ana.realm)
            try await ana.sync()
            let nobodys = RealmPath.team(UUID()).description
            try await ana.sync(naming: [mine, path, "/manager", nobodys], only: ["/common", path])
            #expect(await ana.openRealms == ["/common", path])
            #expect(await ana.closed.sorted() == ["/manager", nobodys, mine].sorted())
            #expect(await ana.repeats == [])
            // Live too, and once; a closed realm is downloaded completely when it is named again.
            let following = Task { try await ana.follow(naming: ["/common", path], only: [mine]) }
            defer { following.cancel() }
            try await ana.wait("closed") { $0.closed.count == 5 && $0.cursors[mine] != nil }
            try fixture.put(.fieldTask, UUID(), "{\"title\":\"u\"}", in: .team(team))
            try fixture.put(.user, UUID(), "{\"email\":\"ana@example.com\"}", in: try .user("ana@example.com"))
            try await ana.wait("the own realm's change") { $0.shown(mine).count == 1 }
            #expect(await ana.openRealms == [mine])
            #expect(await ana.closed.suffix(2).sorted() == ["/common", path].sorted())
        }
    }

    @Test func managerMayNameAnyTeam() async throws {
        try await withGateway { fixture in
            let manager = try await fixture.device("manager@example.com", role: .manager)
            let team = UUID()
            try fixture.makeTeam(team)
            try fixture.put(.fieldTask, UUID(), "{\"title\":\"t\"}", in: .team(team))
            let path = RealmPath.team(team).description
            try await manager.sync(only: [path])
            let (open, shown) = (await manager.openRealms, await manager.shown(path))
            #expect(open == [path] && shown.count == 1)
        }
    }

    @Test func integrationMayNameAnyRealm() async throws {
        try await withGateway { fixture in
            let books = GatewayDevice(fixture, bearer: try fixture.addIntegration("books"))
            try fixture.put(.fieldTask, UUID(), "{\"title\":\"t\"}", in: .manager)
            try await books.sync(only: ["/manager"])
            let (open, shown) = (await books.openRealms, await books.shown("/manager"))
            #expect(open == ["/manager"] && shown.count == 1)
        }
    }

    /// The realm that grants access to the team is not open on such a device, and its changes are followed all the
    /// same: nothing is sent after a membership has ended, other teams stay closed, and the team opens once it is
    /// permitted.
    @Test func liveStreamFollowsMembershipsOfItsNamedTeam() async throws {
        try await withGateway { fixture in
            let ana = try await fixture.device("ana@example.com")
            let (me, team, other) = (try fixture.person("ana@example.com"), UUID(), UUID())
            let path = RealmPath.team(team).description
            try fixture.makeTeam(team)
            try fixture.makeTeam(other)
            for realm in [team, other] { try fixture.put(.fieldTask, UUID(), "{\"title\":\"t\"}", in: .team(realm)) }
            let following = Task { try await ana.follow(only: [path]) }
            defer { following.cancel() }
            try await ana.wait("live, with nothing open") { $0.checkpointCount > 0 }
            #expect(await ana.closed == [path])
            // The other team first: once the named one has opened, the other would have too.
            try fixture.add(me, to: other)
            try fixture.add(me, to: team)
            try await ana.wait("the team") { $0.shown(path).count == 1 && $0.cursors[path] != nil }
            try fixture.put(.fieldTask, UUID(), "{\"title\":\"u\"}", in: .team(team))
            try await ana.wait("a change of it") { $0.shown(path).count == 2 }
            try fixture.remove(me, from: team)
            try fixture.put(.fieldTask, UUID(), "{\"title\":\"secret\"}", in: .team(team))
            try await ana.wait("closed") { $0.closed == [path, path] }
            #expect(await ana.mostHeld[path] == 2)
            try fixture.add(me, to: team)
            try await ana.wait("again") { $0.shown(path).count == 3 }
            let highest = await ana.highest
            #expect(Set(highest.keys) == [path], "no object of another realm was received")
            #expect(await ana.openRealms == [path])
        }
    }

    /// A role is in `/common`, a catalogue reference in the person's own realm.
    @Test func changesOfRoleAndCatalogueAreFollowed() async throws {
        try await withGateway { fixture in
            let ana = try await fixture.device("ana@example.com")
            let catalogue = UUID()
            let path = RealmPath.catalogue(catalogue).description
            try fixture.put(.fieldTask, UUID(), "{\"title\":\"t\"}", in: .manager)
            let following = Task { try await ana.follow(only: ["/manager", path]) }
            defer { following.cancel() }
            try await ana.wait("live") { $0.checkpointCount > 0 }
            try fixture.set(.manager, of: "ana@example.com")
            try await ana.wait("the managers' realm") { $0.shown("/manager").count == 1 }
            let user = "{\"email\":\"ana@example.com\",\"name\":\"A\",\"catalogue\":\"\(catalogue.text)\"}"
            try fixture.put(.user, UUID(), user, in: try .user("ana@example.com"))
            try await ana.wait("the catalogue") { $0.openRealms == ["/manager", path] }
            try fixture.set(.worker, of: "ana@example.com")
            try await ana.wait("closed") { $0.openRealms == [path] }
        }
    }

    @Test func invalidOnlyIsRejectedWithTheReason() async throws {
        try await withGateway { fixture in
            let ana = try await fixture.device("ana@example.com")
            let many = (0...1_000).map { _ in "\"\(RealmPath.team(UUID()))\"" }.joined(separator: ",")
            let cases: [(body: String, detail: String)] = [
                (#"{"only":[]}"#, "at least one realm's path"), (#"{"only":null}"#, "at least one realm's path"),
                (#"{"only":"/common"}"#, "at least one realm's path"), (#"{"only":[7]}"#, "at least one realm's path"),
                (#"{"only":["/common","/teams/a b"]}"#, "'/teams/a b' in 'only' is not a realm's path"),
                (#"{"only":["/common"],"all":true}"#, "'all' and 'only' exclude each other"),
                ("{\"only\":[\(many)]}", "at most 1000 members"),
            ]
            for (body, detail) in cases {
                let response = GatewayResponse(try await fixture.client.send(ana.request("POST", "/v1/sync", body)))
                #expect(response.status == 400 && response.problem == "malformed-request", "\(body.prefix(80))")
                #expect((response.json["detail"] as? String)?.contains(detail) == true, "\(response.body.prefix(200))")
                #expect(response.headers["Content-Type"] == "application/problem+json")
            }
            let most = (0..<1_000).map { _ in "\"\(RealmPath.team(UUID()))\"" }.joined(separator: ",")
            let response = GatewayResponse(
                try await fixture.client.send(ana.request("POST", "/v1/sync", "{\"only\":[\(most)]}")))
            #expect(response.status == 200)
            #expect(response.body.components(separatedBy: "{\"closed\":{\"realm\":\"/teams/").count == 1_001)
        }
    }
}
