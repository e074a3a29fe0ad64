import Access
import Foundation
import HTTPClient
import Model
import NIOCore
import ObjectStore
import Postgres
import TestSupport
import Testing

@testable import RealmGateway

/// `"all": true`: rejections, resets and costs.
@Suite(.ownThreads) struct GatewayEnvironmentBoundsTests {
    @Test func cursorBelowTheFloorOrOfAnotherGenerationIsReset() async throws {
        var limits = GatewayLimits()
        limits.pageCountMax = 2
        limits.changeCountMax = 3
        try await withGateway(limits: limits) { fixture in
            let key = try fixture.addIntegration("books")
            let realms = try GatewayEnvironmentTests.realms(4, fixture)
            try GatewayEnvironmentTests.writeAtRandom(fixture, realms, count: 20, seed: 1)
            let books = EnvironmentCopy(fixture, key: key)
            let half = EnvironmentCopy(fixture, key: key, recordsSnapshots: true)
            try await books.sync()
            #expect(try await half.follow(untilLines: 3, live: false))
            let snapshots = await half.snapshots
            let start = try #require(snapshots.last)
            #expect(start.cursor.split(separator: ":").count == 7)
            try GatewayEnvironmentTests.writeAtRandom(fixture, realms, count: 20, seed: 2)
            try compact(fixture)
            try GatewayEnvironmentTests.writeAtRandom(fixture, realms, count: 5, seed: 3)
            for (number, copy) in [books, half].enumerated() {
                try await copy.sync()
                #expect(await copy.resetCount == 2, "\(number)")
                try await copy.sync()
                #expect(await copy.resetCount == 2, "\(number)")
                #expect(await copy.shown == (try fixture.storedByRealm()), "\(number)")
            }
            // The floor passes a live stream: its state is at the counter.
            let following = Task { try await books.follow() }
            try await books.wait("live") { $0.checkpointCount >= 4 }
            try compact(fixture)
            try GatewayEnvironmentTests.writeAtRandom(fixture, realms, count: 5, seed: 4)
            let end = Int(try fixture.counter().position)
            try await books.wait("the end") { $0.checkpoint >= end }
            #expect(await books.resetCount == 2)
            #expect(await books.shown == (try fixture.storedByRealm()))

            try fixture.withDatabase { connection in
                _ = try connection.run("UPDATE realm.environment SET generation = 2, position = position + 1000")
            }
            // The stream ends, and the next one starts with a reset.
            _ = await following.result
            for copy in [books, half] {
                try await copy.sync()
                #expect(await copy.resetCount == 3)
                #expect(await copy.shown == (try fixture.storedByRealm()))
            }
        }
    }

    /// The floor passes the start of the download while its pages are read: it restarts in the same stream.
    @Test func floorAboveTheStartRestartsTheDownload() async throws {
        try await withGateway { fixture in
            _ = try fixture.addIntegration("books")
            let realms = try GatewayEnvironmentTests.realms(40, fixture)
            try GatewayEnvironmentTests.writeAtRandom(fixture, realms, count: 30, seed: 5)
            try await withFeed(fixture) { feed, _ in
                var feed = feed
                #expect(try await feed.advance().checkpoint == nil && !feed.isDownloaded)
                try GatewayEnvironmentTests.writeAtRandom(fixture, realms, count: 3, seed: 6)
                try compact(fixture)
                let lines = try await feed.advance().lines.map { String(buffer: $0) }
                #expect(lines == ["{\"open\":{\"all\":true,\"reset\":true}}\n"])
                while try await feed.advance().checkpoint == nil {}
                // A stream that has the state and got no change for a long time.
                try GatewayEnvironmentTests.writeAtRandom(fixture, realms, count: 3, seed: 7)
                try compact(fixture)
                let restarted = try await feed.advance()
                #expect(restarted.lines.count == 1 && restarted.checkpoint == nil && !feed.isDownloaded)
            }
        }
    }

    private func compact(_ fixture: GatewayFixture) throws {
        try fixture.withDatabase { connection in
            while try Compaction.step(fixture.environment, keep: .zero, countMax: 1_000, on: &connection)
                != .removed(0)
            {}
        }
    }

    @Test func invalidRequestsAreRejected() async throws {
        try await withGateway { fixture in
            let key = try fixture.addIntegration("books")
            let books = GatewayDevice(fixture, bearer: key)
            let ana = try await fixture.device("ana@example.com", role: .admin)
            let kinds =
                "Appointment, Defect, DefectAccount, DefectCommand, DeletedObject, DeliveryChoice, EndedShare, "
                + "FieldTask, Location, Membership, Note, Notice, Person, PersonLookup, PrivateProfile, Realms, "
            let cases: [(GatewayDevice, String, Int, String, [String])] = [
                (ana, "{\"all\":true}", 403, "integration-only", ["'all' is for integrations", "'realms'"]),
                (ana, "{\"all\":true,\"kinds\":[\"User\"]}", 403, "integration-only", []),
                (books, "{\"all\":true,\"realms\":{}}", 400, "malformed-request", ["'all'", "'realms'"]),
                (books, "{\"realms\":{},\"all\":true}", 400, "malformed-request", ["'all' and 'realms'"]),
                (books, "{\"all\":true,\"kinds\":[\"User\",\"Usr\"]}", 400, "malformed-request", ["'Usr'", kinds]),
                (books, "{\"all\":true,\"kinds\":[\"Poll\"]}", 400, "malformed-request", ["'Poll'", kinds]),
                (books, "{\"all\":true,\"kinds\":[]}", 400, "malformed-request", ["'kinds'", kinds]),
                (books, "{\"all\":true,\"kinds\":\"User\"}", 400, "malformed-request", ["'kinds'", kinds]),
                (books, "{\"all\":false}", 400, "malformed-request", ["'all' must be true"]),
                (books, "{\"kinds\":[\"User\"]}", 400, "malformed-request", ["'kinds' requires 'all'"]),
                (books, "{\"cursor\":null}", 400, "malformed-request", ["'cursor' requires 'all'"]),
                (books, "{\"all\":true,\"cursor\":7}", 400, "malformed-request", ["'cursor'"]),
            ]
            for (caller, body, status, problem, words) in cases {
                let response = GatewayResponse(try await fixture.client.send(caller.request("POST", "/v1/sync", body)))
                #expect(response.status == status && response.problem == problem, "\(body): \(response.body)")
                for word in words { #expect(response.json["detail"].map { "\($0)".contains(word) } == true, "\(body)") }
                #expect(response.headers["Content-Type"] == "application/problem+json")
            }
            // A kind may be written with JSON escapes, and a realm's cursor is not valid for the environment.
            let body = "{\"all\":true,\"kinds\":[\"Us\\u0065r\"],\"cursor\":\"1:0:0\"}"
            let response = GatewayResponse(try await fixture.client.send(books.request("POST", "/v1/sync", body)))
            #expect(response.status == 200 && response.body.hasPrefix("{\"open\":{\"all\":true,\"reset\":true}}"))
            let cursor = Cursor(generation: 1, start: 0, position: 0, kinds: Cursor.digest(of: [.user]))
            let one = "{\"realms\":{\"/users\":\"\(cursor)\"}}"
            #expect(Cursor("\(cursor)") == cursor)
            try fixture.put(.realms, UUID(), "{}", in: .users)
            let realm = GatewayResponse(try await fixture.client.send(books.request("POST", "/v1/sync", one)))
            #expect(realm.body.hasPrefix("{\"open\":{\"realm\":\"/users\",\"reset\":true}}"))
        }
    }

    @Test func environmentsAreIsolated() async throws {
        try await withGateway { fixture in
            let keys = [try fixture.addIntegration("books"), try fixture.addEnvironment(2)]
            let copies = keys.map { EnvironmentCopy(fixture, key: $0) }
            let following = copies.map { copy in Task { try await copy.follow() } }
            defer { for task in following { task.cancel() } }
            for copy in copies { try await copy.wait("live") { $0.checkpointCount >= 1 } }
            let path = try RealmPath.user("ana@example.com")
            for (index, key) in keys.enumerated() {
                let caller = GatewayDevice(fixture, bearer: key)
                for _ in 0...index {
                    let put = await caller.mutation("put", UUID(), "{\"text\":\"\(index)\"}", in: path.description)
                    #expect(try await caller.send([put]).status == 200)
                }
            }
            for (index, copy) in copies.enumerated() {
                let end = Int(try fixture.counter(of: Int32(index + 1)).position)
                try await copy.wait("the end") { $0.checkpoint >= end }
                let stored = try fixture.storedByRealm(in: Int32(index + 1))
                #expect(await copy.shown == stored && stored[path.description]?.isEmpty == false)
                // Also without a cursor.
                let again = EnvironmentCopy(fixture, key: keys[index])
                try await again.sync()
                #expect(await again.shown == stored)
            }
        }
    }

    @Test func removedIntegrationGetsNoMoreChanges() async throws {
        try await withGateway { fixture in
            let books = EnvironmentCopy(fixture, key: try fixture.addIntegration("books"))
            let following = Task { try await books.follow() }
            try await books.wait("live") { $0.checkpointCount >= 1 }
            try fixture.withDatabase { connection in _ = try connection.run("DELETE FROM access.integration") }
            try fixture.put(.timeEntry, UUID(), "{}", in: try .user("ana@example.com"))
            _ = await following.result
            #expect(await books.shown.isEmpty)
        }
    }

    /// A poll of a live stream reads as little with 2,000 realms as with 20, with custom and generic plans, and the
    /// state of 2,000 realms takes few pages.
    @Test func pollCostIsIndependentOfTheNumberOfRealms() async throws {
        try await withGateway { fixture in
            _ = try fixture.addIntegration("books")
            var costs: [[Int64]] = []
            for count in [20, 2_000] {
                try fixture.makeRealms(count)
                try await withFeed(fixture) { feed, pool in
                    var feed = feed
                    var pages = 0
                    while try await feed.advance().checkpoint == nil { pages += 1 }
                    #expect(pages <= 3 + count / 100, "\(pages) pages of \(count) realms")
                    let realm = try fixture.realm(.team(UUID()))
                    var rounds: [Int64] = []
                    for round in 0..<12 {
                        try fixture.write { batch in
                            let key = ObjectKey(realm: realm, kind: .timeEntry, id: UUID())
                            batch.put(key, try CanonicalJSON("{\"text\":\"\(round)\"}"), decision: 0)
                        }
                        let before = try await Self.indexWork(pool)
                        let step = try await feed.advance()
                        #expect(step.lines.count == 1 && step.checkpoint != nil)
                        rounds.append(try await Self.indexWork(pool) - before)
                    }
                    costs.append(rounds)
                }
            }
            // It takes 4 to 6; reads of the writer's connection may be included.
            #expect(costs.allSatisfy { $0.allSatisfy { $0 <= 30 } }, "\(costs)")
        }
    }

    /// Returns the index scans and index entries read of realms, objects and change log, by the pool's one connection.
    private static func indexWork(_ pool: Pool) async throws -> Int64 {
        try await pool.run { connection in
            try connection.run("SELECT pg_stat_force_next_flush()")
            let rows = try connection.run(
                """
                SELECT sum(i.idx_scan + i.idx_tup_read + t.seq_tup_read)::bigint
                FROM pg_stat_user_indexes i JOIN pg_stat_user_tables t USING (relid)
                WHERE i.schemaname IN ('realm', 'store') AND i.relname IN ('realm', 'object', 'change')
                """)
            return try rows[0].value(0)
        }
    }

    /// The feed of the fixture's integration, with its own connection, without a live device.
    private func withFeed(
        _ fixture: GatewayFixture, _ body: (EnvironmentFeed, Pool) async throws -> Void
    ) async throws {
        let pool = try Pool(fixture.database, size: 1)
        defer { pool.stop() }
        let numbers = RealmNumbers()
        let environment = fixture.environment
        let (access, counter) = try await pool.run { connection in
            let id: Int32 = try connection.run("SELECT id FROM access.integration")[0].value(0)
            let caller = Caller.integration(.init(environment: environment, id: id, name: "books"))
            return (
                try AccessReader(caller, numbers, on: &connection),
                try EnvironmentCounter(try connection.run(EnvironmentCounter.load(environment))[0])
            )
        }
        let services = SyncServices(
            pool: pool, numbers: numbers, hub: fixture.gateways[0].hub, kinds: KindDirectory(pool: pool),
            limits: GatewayLimits())
        let request = EnvironmentRequest(
            kinds: KindSelection(Kind.allCases.filter(Permissions.isReadByIntegrations)), cursor: nil)
        try await body(EnvironmentFeed.open(request, services, access, counter).feed, pool)
    }
}

extension GatewayFixture {
    /// Creates people's realms with two objects each.
    fileprivate func makeRealms(_ count: Int) throws {
        try withDatabase { connection in
            _ = try connection.run([
                """
                WITH r AS (
                    INSERT INTO realm.realm (environment_id, path)
                    SELECT 1, '/users/u' || gen_random_uuid() || '@example.com' FROM generate_series(1, \(Int64(count)))
                    RETURNING id
                ), k AS (
                    SELECT id, kind FROM r CROSS JOIN unnest(\([Kind.user, .timeEntry])) k(kind)
                ), p AS (
                    SELECT k.*, gen_random_uuid() AS object_id, row_number() OVER () + e.position AS position
                    FROM k, realm.environment e WHERE e.id = 1
                ), o AS (
                    INSERT INTO store.object
                        (environment_id, realm_id, kind, id, position, source_position, edit_position, deleted, fields)
                    SELECT 1, id, kind, object_id, position, -1, 0, false, '{"a": 1}' FROM p
                )
                INSERT INTO store.change (environment_id, position, realm_id, kind, id)
                SELECT 1, position, id, kind, object_id FROM p
                """,
                "UPDATE realm.environment SET position = (SELECT max(position) FROM realm.change) WHERE id = 1",
            ])
        }
    }
}
