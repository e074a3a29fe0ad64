import Access
import Essentials
import Foundation
import HTTPClient
import Model
import ObjectStore
import Postgres
import TestSupport
import Testing

@testable import RealmGateway

/// Permissions that are granted or revoked while a device is live.
@Suite(.ownThreads) struct GatewayMembershipTests {
    @Test func teamOpensAndClosesAtOnce() async throws {
        try await withGateway { fixture in
            let ana = try await fixture.device("ana@example.com")
            let (me, team) = (try fixture.person("ana@example.com"), UUID())
            let path = RealmPath.team(team).description
            try fixture.makeTeam(team)
            for number in 0..<3 { try fixture.put(.fieldTask, UUID(), "{\"title\":\"\(number)\"}", in: .team(team)) }
            let following = Task { try await ana.follow() }
            defer { following.cancel() }
            try await ana.wait("live") { $0.checkpointCount >= 1 }
            #expect(await ana.shown(path).isEmpty)
            try fixture.add(me, to: team)
            try await ana.wait("the team") { $0.shown(path).count == 3 && $0.cursors[path] != nil }
            try fixture.remove(me, from: team)
            // Objects that are written after the removal, however soon, are not received.
            try fixture.put(.fieldTask, UUID(), "{\"title\":\"secret\"}", in: .team(team))
            try await ana.wait("closed") { $0.closed == [path] }
            #expect(await ana.shown(path).isEmpty)
            try fixture.add(me, to: team)
            try await ana.wait("again, from its beginning") { $0.shown(path).count == 4 }
            #expect(await ana.resets.filter { $0 == path }.count == 2)
            // A deleted team has no members.
            try fixture.delete(.team, team, in: .common)
            try await ana.wait("closed again") { $0.closed == [path, path] }
        }
    }

    @Test func managersRealmsOpenAndCloseWithTheRole() async throws {
        try await withGateway { fixture in
            let ana = try await fixture.device("ana@example.com")
            let team = UUID()
            try fixture.makeTeam(team)
            try fixture.put(.fieldTask, UUID(), "{\"title\":\"1\"}", in: .manager)
            try fixture.put(.fieldTask, UUID(), "{\"title\":\"1\"}", in: .team(team))
            let path = RealmPath.team(team).description
            let following = Task { try await ana.follow(naming: [path]) }
            defer { following.cancel() }
            try await ana.wait("live") { $0.checkpointCount >= 1 }
            #expect(await ana.closed == [path])
            try fixture.set(.manager, of: "ana@example.com")
            // The team was named: it opens once it is permitted.
            try await ana.wait("open") { $0.shown("/manager").count == 1 && $0.shown(path).count == 1 }
            try fixture.set(.worker, of: "ana@example.com")
            try await ana.wait("closed") { $0.closed.sorted() == ["/manager", path, path].sorted() }
        }
    }

    /// If the object that revoked a permission has changed again since, the page with the revocation does not have the
    /// object, but has the writes in between.
    @Test func changesAfterARevocationAreNotSent() async throws {
        var limits = GatewayLimits()
        limits.changeCountMax = 2
        // The reader polls only when something is committed through its gateway.
        limits.liveInterval = .seconds(600)
        limits.liveIdleInterval = .seconds(600)
        try await withGateway(limits: limits) { fixture in
            let ana = try await fixture.device("ana@example.com", role: .manager)
            let me = try fixture.person("ana@example.com")
            let following = Task { try await ana.follow() }
            defer { following.cancel() }
            try await ana.wait("live") { $0.checkpointCount >= 1 && $0.cursors["/manager"] != nil }
            try fixture.set(.worker, of: "ana@example.com")
            try fixture.put(.fieldTask, UUID(), "{\"title\":\"secret\"}", in: .manager)
            let rename = await ana.mutation("patch", me, "{\"name\":\"Ana\"}", kind: "Person", in: "/common")
            #expect(try await ana.send([rename]).results[0].hasPrefix("accepted"))
            try await ana.wait("closed") { $0.closed == ["/manager"] }
            #expect(await ana.mostHeld["/manager"] == nil)
        }
    }

    /// The server creates one `User` object; among several, always the same one counts.
    @Test func catalogueIsReadFromOneUserObject() async throws {
        try await withGateway { fixture in
            let ana = try await fixture.device("ana@example.com")
            let users = (0..<6).map { _ in UUID() }
            for user in users {
                let fields = "{\"email\":\"ana@example.com\",\"name\":\"A\",\"catalogue\":\"\(user.text)\"}"
                try fixture.put(.user, user, fields, in: try .user("ana@example.com"))
            }
            let realms = GatewayResponse(try await fixture.client.send(ana.request("GET", "/v1/realms")))
            let first = try #require(users.map(\.text).min())
            #expect(realms.body.contains("/catalogues/\(first)"))
            #expect(realms.body.components(separatedBy: "/catalogues/").count == 2)
        }
    }

    /// `UUID.uuidString` is upper case, and UUIDs are equal in any case.
    @Test func membershipWithUpperCaseUUIDsCounts() async throws {
        try await withGateway { fixture in
            let manager = try await fixture.device("manager@example.com", role: .manager)
            let ana = try await fixture.device("ana@example.com")
            let (me, team) = (try fixture.person("ana@example.com"), UUID())
            try fixture.makeTeam(team)
            let put = await manager.mutation(
                "put", Membership.id(of: me, in: team),
                "{\"person\":\"\(me.uuidString)\",\"team\":\"\(team.uuidString)\"}", kind: "Membership", in: "/common")
            #expect(try await manager.send([put]).results[0].hasPrefix("accepted"))
            let realms = GatewayResponse(try await fixture.client.send(ana.request("GET", "/v1/realms")))
            #expect(realms.body.contains("{\"realm\":\"\(RealmPath.team(team))\""))
        }
    }

    /// A team's name does not affect permissions: its members' devices take no new snapshot.
    @Test func teamsNameIsDeliveredWithoutASnapshot() async throws {
        try await withGateway { fixture in
            _ = try await fixture.device("ana@example.com")
            let (me, team, missing) = (try fixture.person("ana@example.com"), UUID(), UUID())
            try fixture.makeTeam(team, members: [me])
            try fixture.add(me, to: missing)
            let (state, access) = try fixture.withDatabase { connection in
                let id: Int32 = try connection.run("SELECT id FROM access.person")[0].value(0)
                let caller = Caller.person(
                    BoundPerson(
                        environment: fixture.environment, id: id, email: "ana@example.com",
                        realm: try .user("ana@example.com"), object: me))
                let access = try AccessReader(caller, RealmNumbers(), on: &connection)
                return (try access.read(on: &connection), access)
            }
            func isAffected(_ team: UUID, exists: Bool) throws -> Bool {
                let change = try #require(LiveChunk.PermissionChange(kind: .team, id: team, exists: exists))
                return state.isAffected(by: change, in: access.common, own: access.own)
            }
            #expect(try !isAffected(team, exists: true) && isAffected(team, exists: false))
            #expect(try !isAffected(UUID(), exists: false) && isAffected(missing, exists: true))
        }
    }

    /// Rejected mutations and arbitrary names create no realm.
    @Test func onlyWritesCreateRealms() async throws {
        try await withGateway { fixture in
            let ana = try await fixture.device("ana@example.com")
            let manager = try await fixture.device("manager@example.com", role: .manager)
            let boss = try fixture.person("manager@example.com")
            func shares(_ count: Int, owner: UUID) async -> [String] {
                var mutations: [String] = []
                for _ in 0..<count {
                    let (share, fields) = (UUID(), "{\"owner\":\"\(owner)\",\"recipient\":\"\(boss)\"}")
                    let path = RealmPath.share(share).description
                    mutations.append(await ana.mutation("put", share, fields, kind: "Share", in: path))
                }
                return mutations
            }
            func sharing(with recipient: UUID) async -> String {
                let item = UUID()
                let fields = "{\"kind\":\"Note\",\"item\":\"\(item)\",\"recipient\":\"\(recipient)\"}"
                let id = SharedItem.id(of: item, with: recipient)
                return await ana.mutation("put", id, fields, kind: "SharedItem", in: await ana.realm)
            }
            func count() throws -> Int64 {
                try fixture.withDatabase { try $0.run("SELECT count(*) FROM realm.realm")[0].value(0) }
            }
            let me = try fixture.person("ana@example.com")
            let task = await manager.mutation(
                "put", UUID(), "{\"title\":\"t\"}", kind: "FieldTask", in: RealmPath.team(UUID()).description)
            let before = try count()
            let refused = try await ana.send(await shares(20, owner: me) + shares(20, owner: UUID())).results
            #expect(refused.count == 40 && refused.allSatisfy { $0 == "realm-not-permitted" })
            // With oneself, or without a recipient.
            for recipient in [me, UUID()] {
                #expect(try await ana.send([await sharing(with: recipient)]).results == ["invalid-field"])
            }
            #expect(try await manager.send([task]).results == ["realm-not-permitted"])
            let named = RealmPath.team(UUID()).description
            let body = "{\"realms\":{\"\(named)\":null}}"
            let sync = GatewayResponse(try await fixture.client.send(manager.request("POST", "/v1/sync", body)))
            #expect(sync.body.contains("{\"closed\":{\"realm\":\"\(named)\"}}"))
            // That created the own realms of both and the managers'.
            #expect(try count() <= before + 3)
            #expect(try await ana.send([await sharing(with: boss)]).results[0].hasPrefix("accepted"))
        }
    }

    /// A manager who named a team gets it once it exists, with its tasks, which are written elsewhere.
    @Test func teamOpensForAManagerOnceItExists() async throws {
        try await withGateway { fixture in
            let manager = try await fixture.device("manager@example.com", role: .manager)
            let team = UUID()
            let path = RealmPath.team(team).description
            let following = Task { try await manager.follow(naming: [path]) }
            defer { following.cancel() }
            try await manager.wait("closed") { $0.closed == [path] && $0.checkpointCount > 0 }
            let results = try await manager.send([
                await manager.mutation("put", UUID(), "{\"title\":\"t\"}", kind: "FieldTask", in: path),
                await manager.mutation("put", team, "{\"name\":\"t\"}", kind: "Team", in: "/common"),
                await manager.mutation("put", UUID(), "{\"title\":\"t\"}", kind: "FieldTask", in: path),
            ]).results
            #expect(results[0] == "realm-not-permitted" && results[1].hasPrefix("accepted"))
            #expect(results[2] == "kind-not-allowed")
            try fixture.put(.fieldTask, UUID(), "{\"title\":\"t\"}", in: .team(team))
            try await manager.wait("the team") { $0.shown(path).count == 1 }
            let delete = await manager.mutation("delete", team, kind: "Team", in: "/common")
            let late = await manager.mutation("put", UUID(), "{\"title\":\"t\"}", kind: "FieldTask", in: path)
            let end = try await manager.send([delete, late]).results
            #expect(end[0].hasPrefix("accepted") && end[1] == "realm-not-permitted")
            try await manager.wait("closed again") { $0.closed == [path, path] }
        }
    }

    @Test func recipientRemovesAShare() async throws {
        try await withGateway { fixture in
            let ana = try await fixture.device("ana@example.com")
            let ben = try await fixture.device("ben@example.com")
            let ids = try ["ana", "ben"].map { try fixture.person("\($0)@example.com") }
            let (share, note) = (Share.id(of: ids[0], with: ids[1]), UUID())
            let path = RealmPath.share(share).description
            let emails = ["ana@example.com", "ben@example.com"]
            try fixture.makeShare(share, owner: ids[0], recipient: ids[1], emails: emails)
            try fixture.put(.note, note, "{\"title\":\"n\"}", in: .share(share))
            let following = [ana, ben].map { device in Task { try await device.follow() } }
            defer { for task in following { task.cancel() } }
            for device in [ana, ben] { try await device.wait("the share") { $0.shown(path).count == 2 } }
            // The owner removes a link, not the copy.
            let take = await ana.mutation("delete", note, kind: "Note", in: path)
            #expect(try await ana.send([take]).results == ["kind-not-allowed"])
            let edits = [
                await ben.mutation("patch", share, "{\"owner\":\"\(ids[1].text)\"}", kind: "Share", in: path),
                await ben.mutation("patch", note, "{\"title\":\"mine\"}", kind: "Note", in: path),
            ]
            #expect(try await ben.send(edits).results == ["operation-not-allowed", "operation-not-allowed"])
            let removal = await ben.mutation("delete", note, kind: "Note", in: path)
            #expect(try await ben.send([removal]).results[0].hasPrefix("accepted"))
            for device in [ana, ben] { try await device.wait("no copy") { $0.shown(path).count == 1 } }
            let end = await ben.mutation("delete", share, kind: "Share", in: path)
            #expect(try await ben.send([end]).results[0].hasPrefix("accepted"))
            for device in [ana, ben] { try await device.wait("closed") { $0.closed == [path] } }
        }
    }

    /// A download ends when its permission is revoked.
    @Test func revocationEndsADownload() async throws {
        var limits = GatewayLimits()
        limits.pageCountMax = 20
        try await withGateway(limits: limits) { fixture in
            let ana = try await fixture.device("ana@example.com")
            let (me, team) = (try fixture.person("ana@example.com"), UUID())
            try fixture.makeTeam(team, members: [me])
            let number = try fixture.realm(.team(team))
            let more = String(repeating: "x", count: 8_000)
            try fixture.write { batch in
                for _ in 0..<3_000 {
                    batch.put(
                        ObjectKey(realm: number, kind: .fieldTask, id: UUID()),
                        try CanonicalJSON("{\"title\":\"t\",\"taskDescription\":\"\(more)\"}"), decision: 0)
                }
            }
            let path = RealmPath.team(team).description
            let following = Task { try await ana.follow() }
            defer { following.cancel() }
            try await ana.wait("a part of the realm") { ($0.copy[path]?.count ?? 0) > 100 }
            try fixture.remove(me, from: team)
            try await ana.wait("closed") { $0.closed == [path] && $0.checkpointCount > 0 }
            #expect(await ana.mostHeld[path] ?? 0 < 3_000)
        }
    }

    /// A membership that is removed between the decision and the commit causes a conflict.
    @Test func membershipRemovedBeforeTheCommitCausesAConflict() async throws {
        try await withGateway { fixture in
            _ = try await fixture.device("ana@example.com")
            let (me, team, task) = (try fixture.person("ana@example.com"), UUID(), UUID())
            try fixture.makeTeam(team, members: [me])
            try fixture.put(.fieldTask, task, "{\"title\":\"t\"}", in: .team(team))
            let done = Mutation(
                operation: .patch, kind: .fieldTask, id: task, fields: Array("{\"isCompleted\":true}".utf8))
            let problem = try fixture.withDatabase { connection in
                let caller = try fixture.caller("ana@example.com", on: &connection)
                let mutation = try UncommittedMutation(done, in: .team(team), by: caller, on: &connection)
                try fixture.remove(me, from: team)
                return try mutation.problemAfterConflict(on: &connection)
            }
            #expect(problem?.contains("realm-not-permitted") == true)
            #expect(try fixture.stored("/teams/\(team.text)").values.first == "{\"title\":\"t\"}")
        }
    }
}
