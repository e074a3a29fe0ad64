import Access
import Crypto
import Essentials
import Foundation
import HTTPClient
import Logging
import Model
import ObjectStore
import Postgres
import TestSupport
import Testing

@testable import RealmGateway

/// Integrations that authenticate with a key, or with a token of the identity provider.
@Suite(.ownThreads) struct GatewayIntegrationTests {
    private func addKey(_ fixture: GatewayFixture, _ name: String = "books") throws -> String {
        try fixture.addIntegration(name)
    }

    private func status(_ fixture: GatewayFixture, _ bearer: String) async throws -> GatewayResponse {
        let caller = GatewayDevice(fixture, bearer: bearer)
        return GatewayResponse(try await fixture.client.send(caller.request("GET", "/v1/realms")))
    }

    @Test func keyOpensEveryRealmAndWritesServerFields() async throws {
        try await withGateway { fixture in
            let books = GatewayDevice(fixture, bearer: try addKey(fixture))
            let ana = try await fixture.device("ana@example.com")
            let (entry, realm) = (UUID(), await ana.realm)
            _ = try await ana.send([await ana.mutation("put", entry, "{\"text\":\"roof\",\"submitRequested\":true}")])
            let following = Task { try await books.follow(naming: [realm, "/users", "/manager", "/polls"]) }
            defer { following.cancel() }
            try await books.wait("the entry and its line") { $0.shown(realm).count == 2 }
            #expect(await books.closed == ["/polls"])
            let line = "{\"entry\":\"\(entry)\",\"status\":\"released\",\"timestamp\":\"2026-03-30T07:15:00Z\"}"
            let results = try await books.send([
                await books.mutation("patch", entry, "{\"status\":\"released\",\"backendId\":\"7\"}", in: realm),
                await books.mutation("put", UUID(), line, kind: "TimeEntryStatus", in: realm),
                await books.mutation("put", UUID(), "{\"entry\":\"x\"}", kind: "TimeEntryStatus", in: realm),
                await books.mutation("patch", entry, "{\"state\":\"released\"}", in: realm),
                await books.mutation("put", UUID(), "{}", kind: "TimeEntry", in: "/common"),
                await books.mutation("put", UUID(), "{}", kind: "Realms", in: "/polls"),
            ]).results
            #expect(
                results.map { $0.split(separator: " ")[0] } == [
                    "accepted", "accepted", "invalid-field", "unknown-field", "kind-not-allowed",
                    "realm-not-permitted",
                ])
            try await ana.sync()
            #expect(await ana.shown(realm).count == 3)
            #expect(
                try fixture.stored(realm)["TimeEntry/\(entry.uuidString.lowercased())"]?.contains("\"backendId\":\"7\"")
                    == true)
            // It puts a complete object, also over a tombstone.
            _ = try await books.send([await books.mutation("delete", entry, in: realm)])
            let again = try await books.send([
                await books.mutation("put", entry, "{\"status\":\"approved\"}", in: realm)
            ])
            #expect(again.results[0].hasPrefix("accepted"))
            #expect(
                try fixture.stored(realm)["TimeEntry/\(entry.uuidString.lowercased())"] == "{\"status\":\"approved\"}")
            // It gets the list of realms.
            #expect(try await status(fixture, books.token).body.contains("{\"realm\":\"\(realm)\","))
        }
    }

    /// The gateway deletes an entry's lines with it; an explicit delete of them is harmless.
    @Test func entryAndItsLinesAreDeletedTogether() async throws {
        try await withGateway { fixture in
            let books = GatewayDevice(fixture, bearer: try addKey(fixture))
            let ana = try await fixture.device("ana@example.com")
            let (entry, other, realm) = (UUID(), UUID(), await ana.realm)
            _ = try await ana.send([await ana.mutation("put", entry, "{}"), await ana.mutation("put", other, "{}")])
            let upper = #"{"entry":"\#(entry.uuidString)","status":"draft","timestamp":"2026-03-30T07:15:00Z"}"#
            let written = UUID()
            _ = try await books.send([
                await books.mutation("put", written, upper, kind: "TimeEntryStatus", in: realm),
                await books.mutation("put", UUID(), upper, kind: "TimeEntryStatus", in: realm),
            ])
            let results = try await books.send([
                await books.mutation("delete", written, kind: "TimeEntryStatus", in: realm),
                await books.mutation("delete", entry, in: realm),
            ]).results
            #expect(results.allSatisfy { $0.hasPrefix("accepted") } && results.count == 2)
            let stored = try fixture.stored(realm)
            #expect(stored.keys.filter { $0.hasPrefix("TimeEntry/") } == ["TimeEntry/\(other.text)"])
            #expect(stored.count == 2)
        }
    }

    @Test func removedIntegrationLosesAccess() async throws {
        try await withGateway { fixture in
            let books = GatewayDevice(fixture, bearer: try addKey(fixture))
            let following = Task { try await books.follow(naming: ["/users"]) }
            try await books.wait("live") { $0.checkpointCount >= 1 }
            try fixture.withDatabase { connection in _ = try connection.run("DELETE FROM access.integration") }
            let response = try await books.send([
                await books.mutation("put", UUID(), "{}", kind: "Realms", in: "/users")
            ])
            #expect(response.status == 401 && response.problem == "invalid-token")
            // The stream ends within seconds too.
            _ = await following.result
            #expect(try await status(fixture, books.token).status == 401)
            #expect(try await status(fixture, IntegrationKey.make()).status == 401)
            #expect(try await status(fixture, IntegrationKey.prefix).status == 401)
        }
    }

    /// A write of an integration that is removed after its decision conflicts under the counter's lock.
    @Test func removalBeforeTheCommitCausesAConflict() async throws {
        try await withGateway { fixture in
            _ = try addKey(fixture)
            let fields = Array("{\"userId\":\"a\",\"path\":\"/users/a\"}".utf8)
            let put = Mutation(operation: .put, kind: .realms, id: UUID(), fields: fields)
            let isRejected = try fixture.withDatabase { connection in
                let id: Int32 = try connection.run("SELECT id FROM access.integration")[0].value(0)
                let caller = Caller.integration(.init(environment: fixture.environment, id: id, name: "books"))
                let mutation = try UncommittedMutation(put, in: .users, by: caller, on: &connection)
                try connection.run("DELETE FROM access.integration")
                guard case .conflicted = try mutation.commit(on: &connection),
                    case .callerRemoved = try mutation.retry(on: &connection)
                else { return false }
                return try connection.run("SELECT FROM store.object WHERE id = \(put.id)").count == 0
            }
            #expect(isRejected)
        }
    }

    /// The e-mail address depends on a scope: a token without one may be that of a person who used the same client.
    @Test func clientCredentialsAuthenticateAnIntegration() async throws {
        try await withGateway { fixture in
            try fixture.withDatabase { connection in
                _ = try connection.run([
                    "UPDATE access.provider SET client_id = 'app'",
                    """
                    INSERT INTO access.integration (environment_id, name, client_id, subject)
                    VALUES (1, 'erp', 'erp-client', NULL), (1, 'legacy', 'service-7', 'account-7'),
                        (1, 'odd', 'app', NULL)
                    """,
                ])
            }
            for gateway in fixture.gateways { try await gateway.directory.refresh() }
            let keys = fixture.keys
            let good = [
                try await keys.clientToken("erp-client", subject: "erp-client"),
                try await keys.clientToken(nil, subject: "erp-client"),
                try await keys.clientToken("service-7", subject: "account-7") { $0.scope = "email profile" },
            ]
            for token in good { #expect(try await status(fixture, token).status == 200) }
            let bad = [
                // A person who used the client, with a token without an address.
                try await keys.clientToken("erp-client", subject: "ana"),
                try await keys.clientToken("service-7", subject: "service-7"),
                try await keys.clientToken("other", subject: "erp-client"),
                try await keys.clientToken("app", subject: "app"),
                try await keys.clientToken("erp-client", subject: "erp-client") { $0.nonce = "n" },
                try await keys.clientToken("erp-client", subject: "erp-client") { $0.auth_time = 1 },
                try await keys.clientToken("erp-client", subject: "erp-client") { $0.scope = "profile openid" },
            ]
            for (index, token) in bad.enumerated() {
                let response = try await status(fixture, token)
                #expect(response.status == 401 && response.problem == "invalid-token", "\(index)")
            }
            // A person is a person with any app.
            let person = try await keys.clientToken("erp-client", subject: "ana", email: "ana@example.com")
            let realms = try await status(fixture, person)
            #expect(realms.status == 200 && realms.body.contains("/users/ana@example.com"))
            let caller = GatewayDevice(fixture, bearer: person)
            let body = "{\"realms\":{\"/users\":null}}"
            let sync = GatewayResponse(try await fixture.client.send(caller.request("POST", "/v1/sync", body)))
            #expect(sync.body.contains("{\"closed\":{\"realm\":\"/users\"}}"))
        }
    }

    /// Many realms have one cursor, and no line of the stream lists them all.
    @Test func streamOfManyRealmsResumesFromOneCursor() async throws {
        try await withGateway { fixture in
            let books = GatewayDevice(fixture, bearer: try addKey(fixture))
            let teams = (0..<SyncLines.namedCountMax + 20).map { _ in UUID() }
            for team in teams { try fixture.put(.fieldTask, UUID(), "{\"title\":\"t\"}", in: .team(team)) }
            let names = teams.map { RealmPath.team($0).description }
            try await books.follow(untilCheckpoints: 1, naming: names)
            let cursors = await books.cursors
            #expect(cursors.count == names.count && Set(cursors.values).count == 1)
            let resets = await books.resets.count
            try fixture.put(.fieldTask, UUID(), "{\"title\":\"new\"}", in: .team(teams[7]))
            try await books.sync()
            let shown = await books.shown(names[7])
            #expect(shown.count == 2 && resets == names.count)
            let (after, repeats) = (await books.resets.count, await books.repeats)
            #expect(after == resets && repeats.isEmpty)
        }
    }

    /// Clients with invalid keys cannot overload the database; a new key works at once.
    @Test func lookupsOfUnknownKeysAreLimited() async throws {
        #expect(IntegrationKey.isShaped(IntegrationKey.make()))
        for text in ["", "fpk_", IntegrationKey.make() + "A", "fpk_" + String(repeating: "é", count: 43)] {
            #expect(!IntegrationKey.isShaped(text))
        }
        try await withGateway { fixture in
            let pool = try Pool(fixture.database, size: 1)
            defer { pool.stop() }
            let directory = EnvironmentDirectory(pool: pool, logger: Logger(label: "test"))
            try await directory.refresh()
            func find(_ key: String) async throws -> Caller? {
                try await directory.integration(keyHash: Data(SHA256.hash(data: Array(key.utf8))))
            }
            let first = try addKey(fixture, "first")
            let caller = try #require(try await find(first))
            #expect(!directory.isRemoved(caller))
            for _ in 0..<50 { #expect(try await find(IntegrationKey.make()) == nil) }
            let second = try addKey(fixture, "second")
            #expect(try await find(second) == nil)
            #expect(try await find(first) == caller)
            try await directory.refresh()
            #expect(try await find(second) != nil)
        }
    }

    /// A key that is looked up during a reload is not treated as removed.
    @Test func newIntegrationKeepsAccessDuringAReload() async throws {
        try await withGateway { fixture in
            let pool = try Pool(fixture.database, size: 2)
            defer { pool.stop() }
            let directory = EnvironmentDirectory(pool: pool, logger: Logger(label: "test"))
            let reading = Task { while !Task.isCancelled { try await directory.refresh() } }
            for number in 0..<100 {
                let key = try addKey(fixture, "books-\(number)")
                let hash = Data(SHA256.hash(data: Array(key.utf8)))
                // Lookups between two reloads are limited.
                var caller: Caller?
                let end = ContinuousClock.now + patienceMax
                while caller == nil, .now < end { caller = try await directory.integration(keyHash: hash) }
                let added = try #require(caller)
                for _ in 0..<200 {
                    #expect(!directory.isRemoved(added))
                    await Task.yield()
                }
            }
            reading.cancel()
            _ = await reading.result
        }
    }

    /// A reload that began earlier than another one and ends later does not restore outdated state.
    @Test func outdatedReloadHasNoEffect() async throws {
        try await withGateway { fixture in
            let pool = try Pool(fixture.database, size: 3)
            defer { pool.stop() }
            let directory = EnvironmentDirectory(pool: pool, logger: Logger(label: "test"))
            let reading = Task { while !Task.isCancelled { try await directory.refresh() } }
            for client in (0..<200).map({ "client-\($0)" }) {
                try fixture.withDatabase { connection in
                    _ = try connection.run(
                        """
                        INSERT INTO access.integration (environment_id, name, client_id)
                        VALUES (1, \(client), \(client))
                        """)
                }
                try await directory.refresh()
                for _ in 0..<200 {
                    #expect(directory.integration(ofClient: client, subject: client, in: fixture.environment) != nil)
                    await Task.yield()
                }
            }
            reading.cancel()
            _ = await reading.result
        }
    }

    @Test func removedIntegrationGetsNoStream() async throws {
        try await withGateway { fixture in
            let books = GatewayDevice(fixture, bearer: try addKey(fixture))
            #expect(try await status(fixture, books.token).status == 200)
            try fixture.withDatabase { connection in _ = try connection.run("DELETE FROM access.integration") }
            let body = "{\"realms\":{\"/users\":null}}"
            let response = GatewayResponse(try await fixture.client.send(books.request("POST", "/v1/sync", body)))
            #expect(response.status == 401 && response.problem == "invalid-token")
        }
    }

    /// An integration may name any realm; a realm exists once something was written into it.
    @Test func realmOpensForAnIntegrationOnceItExists() async throws {
        var limits = GatewayLimits()
        limits.keepaliveMax = .milliseconds(300)
        try await withGateway(limits: limits) { fixture in
            let books = GatewayDevice(fixture, bearer: try addKey(fixture))
            let teams = (0..<20).map { _ in UUID() }
            let paths = teams.map { RealmPath.team($0).description }
            let following = Task { try await books.follow(naming: paths) }
            defer { following.cancel() }
            try await books.wait("closed") { $0.closed == paths.sorted() && $0.checkpointCount > 0 }
            let rows = try fixture.withDatabase {
                try $0.run("SELECT FROM realm.realm WHERE path LIKE '/teams/%'").count
            }
            #expect(rows == 0)
            try fixture.put(.fieldTask, UUID(), "{\"title\":\"t\"}", in: .team(teams[3]))
            try await books.wait("open") { $0.shown(paths[3]).count == 1 }
            #expect(await books.closed.count == paths.count)
        }
    }

    /// A deleted `Person` is created again, with the same id, at the next login; meanwhile the person has a worker's
    /// permissions.
    @Test func deletedPersonIsRecreatedAtTheNextLogin() async throws {
        try await withGateway(count: 2) { fixture in
            let books = GatewayDevice(fixture, bearer: try addKey(fixture))
            let ana = try await fixture.device("ana@example.com", role: .manager)
            let (me, team, task) = (try fixture.person("ana@example.com"), UUID(), UUID())
            try fixture.makeTeam(team, members: [me])
            try fixture.put(.fieldTask, task, "{\"title\":\"t\"}", in: .team(team))
            let path = RealmPath.team(team).description
            let delete = await books.mutation("delete", me, kind: "Person", in: "/common")
            #expect(try await books.send([delete]).results[0].hasPrefix("accepted"))
            let response = try await ana.send([
                await ana.mutation("patch", task, "{\"isCompleted\":true}", kind: "FieldTask", in: path),
                await ana.mutation("patch", task, "{\"title\":\"mine\"}", kind: "FieldTask", in: path),
            ])
            #expect(response.results.map { $0.split(separator: " ")[0] } == ["accepted", "field-not-allowed"])
            // The other gateway has not cached them yet.
            let realms = GatewayResponse(try await fixture.client.send(ana.request("GET", "/v1/realms", at: 1)))
            #expect(realms.status == 200)
            #expect(try fixture.stored("/common")["Person/\(me.text)"] == "{\"name\":\"\",\"role\":\"worker\"}")
            _ = try await books.send([await books.mutation("delete", me, kind: "Person", in: "/common")])
            let put = await ana.mutation("put", me, "{\"name\":\"Ana\"}", kind: "Person", in: "/common")
            #expect(try await ana.send([put]).results[0].hasPrefix("accepted"))
        }
    }

    /// The list of addresses takes precedence over the domains, and addresses are compared by the same rule everywhere.
    @Test func membershipFollowsAddressesThenDomains() async throws {
        try await withGateway { fixture in
            try fixture.withDatabase { connection in
                _ = try connection.run([
                    "INSERT INTO realm.environment (id, name) VALUES (2, 'other')",
                    "INSERT INTO access.address VALUES ('guest@elsewhere.com', 1), ('ben@example.com', 2)",
                ])
            }
            func login(_ email: String) async throws -> GatewayResponse {
                try await status(fixture, try await fixture.keys.token(email))
            }
            #expect(try await login("Guest@elsewhere.com").status == 200)
            #expect(try await login("guest2@elsewhere.com").problem == "not-a-member")
            #expect(try await login("ben@example.com").problem == "not-a-member")
            #expect(try await login("a@b@example.com").problem == "email-unusable")
        }
    }
}
