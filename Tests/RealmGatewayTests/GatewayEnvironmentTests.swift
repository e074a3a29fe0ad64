import Essentials
import Foundation
import HTTPClient
import Model
import ObjectStore
import Postgres
import TestSupport
import Testing

@testable import RealmGateway

/// `"all": true`: an integration's copy converges to its environment, despite interruptions.
@Suite(.ownThreads) struct GatewayEnvironmentTests {
    private static let small: GatewayLimits = {
        var limits = GatewayLimits()
        limits.pageCountMax = 3
        limits.pageRealmCountMax = 2
        limits.changeCountMax = 4
        return limits
    }()

    private func same(_ fixture: GatewayFixture, _ copy: EnvironmentCopy, _ kinds: [Kind]? = nil) async throws {
        let (shown, stored) = (await copy.shown, try fixture.storedByRealm(kinds))
        #expect(shown == stored, "\(shown.count) realms shown, \(stored.count) stored")
        #expect(await copy.repeats == [])
    }

    @Test func downloadIsFollowedByChanges() async throws {
        try await withGateway { fixture in
            let key = try fixture.addIntegration("books")
            let paths = try (0..<5).map { try RealmPath.user("p\($0)@example.com") }
            for path in paths {
                for _ in 0..<3 { try fixture.put(.timeEntry, UUID(), "{\"text\":\"roof\"}", in: path) }
                try fixture.put(.user, UUID(), "{\"name\":\"x\"}", in: path)
            }
            let (gone, moved) = (UUID(), UUID())
            try fixture.put(.timeEntry, gone, "{\"text\":\"gone\"}", in: paths[0])
            try fixture.delete(.timeEntry, gone, in: paths[0])
            try fixture.put(.person, moved, "{\"name\":\"Ana\"}", in: .common)
            // The services' own objects, of any kind, are not sent.
            try fixture.put(.timeEntry, UUID(), "{\"text\":\"own\"}", in: .polls)
            try fixture.put(.seenRecord, UUID(), "{}", in: paths[0])
            let kinds = [Kind.timeEntry, .person]
            let books = EnvironmentCopy(fixture, key: key, kinds: kinds)
            let following = Task { try await books.follow() }
            defer { following.cancel() }
            try await books.wait("the state") { $0.checkpointCount >= 1 }
            try await same(fixture, books, kinds)
            #expect(await books.shown.count == 6)
            #expect(await books.resetCount == 1)
            #expect(await books.copy[paths[0].description]?.count == 3)

            try fixture.put(.person, moved, "{\"name\":\"Ana B\"}", in: .common)
            try fixture.put(.timeEntry, gone, "{\"text\":\"again\"}", in: paths[3])
            try fixture.delete(.timeEntry, gone, in: paths[3])
            try fixture.put(.timeEntry, UUID(), "{\"text\":\"own\"}", in: .polls)
            // A new realm.
            let team = RealmPath.team(UUID())
            try fixture.put(.timeEntry, UUID(), "{\"text\":\"new\"}", in: team)
            let end = Int(try fixture.counter().position)
            try await books.wait("the changes") { $0.checkpoint >= end }
            try await same(fixture, books, kinds)
            #expect(await books.shown[team.description]?.count == 1)
            let held = await books.copy[paths[3].description]?["TimeEntry/\(gone.text)"]
            #expect(held != nil && held?.fields == nil)
            #expect(await books.logged == books.logged.sorted())
            #expect(await books.requestCount == 1)

            // A change of another kind is not sent, except that the cursor advances.
            let (lineCount, before) = (await books.lineCount, await books.checkpointCount)
            try fixture.put(.user, UUID(), "{\"name\":\"y\"}", in: paths[1])
            try fixture.put(.person, UUID(), "{\"name\":\"Ben\"}", in: .common)
            let last = Int(try fixture.counter().position)
            try await books.wait("the person") { $0.checkpoint >= last }
            #expect(await books.checkpointCount == before + 1)
            #expect(await books.lineCount == lineCount + 2)

            // Other kinds are another stream, for which the cursor is not valid.
            let all = EnvironmentCopy(fixture, key: key)
            await all.resume(from: .init(cursor: try #require(await books.cursor), copy: [:]))
            try await all.sync()
            #expect(await all.resetCount == 1)
            try await same(fixture, all)
        }
    }

    /// Keepalives advance the cursor, also during changes of other kinds.
    @Test func idleStreamGetsKeepalives() async throws {
        var limits = GatewayLimits()
        limits.keepaliveMax = .milliseconds(300)
        try await withGateway(limits: limits) { fixture in
            let books = EnvironmentCopy(fixture, key: try fixture.addIntegration("books"), kinds: [.realms])
            let following = Task { try await books.follow() }
            defer { following.cancel() }
            try await books.wait("live") { $0.checkpointCount >= 1 }
            try fixture.put(.user, UUID(), "{\"name\":\"y\"}", in: try .user("ana@example.com"))
            let end = Int(try fixture.counter().position)
            try await books.wait("a keepalive") { $0.keepaliveCount > 0 && $0.checkpoint >= end }
            #expect(await books.checkpointCount == 1)
            let cursor = try #require(await books.cursor)
            let next = EnvironmentCopy(fixture, key: try fixture.addIntegration("next"), kinds: [.realms])
            await next.resume(from: .init(cursor: cursor, copy: [:]))
            try await next.sync()
            #expect(await next.resetCount == 0)
        }
    }

    /// A stream that resumes from any cursor converges to the environment. The seed is printed.
    @Test(arguments: Seeds.random(2, for: "cursors of the whole environment"))
    func everyCursorConverges(seed: UInt64) async throws {
        try await withGateway(limits: Self.small) { fixture in
            let key = try fixture.addIntegration("books")
            let realms = try Self.realms(5, fixture)
            try Self.writeAtRandom(fixture, realms, count: 20, seed: seed)
            let books = EnvironmentCopy(fixture, key: key, recordsSnapshots: true)
            // Half of the state, then changes in both halves, then the rest.
            try await books.follow(untilLines: 8, live: false)
            try Self.writeAtRandom(fixture, realms, count: 20, seed: seed &+ 1)
            try await books.sync()
            try Self.writeAtRandom(fixture, realms + (try Self.realms(2, fixture)), count: 15, seed: seed &+ 2)
            try await books.sync()
            try await same(fixture, books)
            let snapshots = await books.snapshots
            #expect(snapshots.count > 40)
            for snapshot in snapshots {
                let copy = EnvironmentCopy(fixture, key: key)
                await copy.resume(from: snapshot)
                try await copy.sync()
                #expect(await copy.resetCount == 0, "\(snapshot.cursor)")
                #expect(await copy.shown == books.shown, "\(snapshot.cursor)")
                let repeats = await copy.repeats
                #expect(repeats == [], "\(snapshot.cursor)")
            }
        }
    }

    /// Writers create realms and change and delete objects during the download with small pages, by a live stream and
    /// by one that disconnects after every few lines. The seed is printed.
    @Test(arguments: Seeds.random(2, for: "the whole environment while others write"))
    func copyConvergesDuringConcurrentWrites(seed: UInt64) async throws {
        try await withGateway(count: 2, limits: Self.small) { fixture in
            let key = try fixture.addIntegration("books")
            let realms = try Self.realms(12, fixture)
            try Self.writeAtRandom(fixture, realms, count: 150, seed: seed)
            let (live, hasty) = (
                EnvironmentCopy(fixture, key: key), EnvironmentCopy(fixture, key: key, kinds: [.timeEntry, .fieldTask])
            )
            let following = Task { try await live.follow() }
            defer { following.cancel() }
            let over = Flag()
            defer { over.raise() }
            let writers = (0..<2).map { number in
                BackgroundThread {
                    var round: UInt64 = 0
                    while !over.isUp {
                        round += 1
                        let made = try Self.realms(1, fixture)
                        try Self.writeAtRandom(
                            fixture, realms + made, count: 3, seed: seed &+ 100 &* round &+ UInt64(number))
                    }
                }
            }
            // The state is completed in many requests during the writes.
            for _ in 0..<60 { try await hasty.follow(untilLines: 3, live: false) }
            try await live.wait("the state and some changes") { $0.checkpointCount > 0 && $0.logged.count > 50 }
            over.raise()
            for writer in writers { try writer.wait() }
            let end = Int(try fixture.counter().position)
            try await live.wait("the end") { $0.checkpoint >= end }
            try await hasty.sync()
            try await same(fixture, live)
            try await same(fixture, hasty, [.timeEntry, .fieldTask])
            #expect(await live.resetCount == 1)
            #expect(await hasty.resetCount == 1)
            #expect(await live.logged == live.logged.sorted())
        }
    }

    static func realms(_ count: Int, _ fixture: GatewayFixture) throws -> [Int32] {
        try (0..<count).map { _ in try fixture.realm(.team(UUID())) }
    }

    static func writeAtRandom(_ fixture: GatewayFixture, _ realms: [Int32], count: Int, seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        var connection = try Connection(fixture.database)
        for step in 0..<count {
            var batch = WriteBatch(environment: fixture.environment)
            var taken: Set<ObjectKey> = []
            for _ in 0..<Int.random(in: 1...7, using: &random) {
                let id = UUID(
                    uuid: (UInt8.random(in: 1...6, using: &random), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0))
                let kind = [Kind.timeEntry, .fieldTask, .user].randomElement(using: &random) ?? .user
                let key = ObjectKey(realm: realms.randomElement(using: &random) ?? 0, kind: kind, id: id)
                guard taken.insert(key).inserted else { continue }
                if Int.random(in: 0..<4, using: &random) == 0 {
                    batch.delete(key, decision: 0)
                } else {
                    batch.put(key, try CanonicalJSON("{\"text\":\"\(seed) \(step)\"}"), decision: 0)
                }
            }
            _ = try batch.commit(on: &connection)
        }
    }
}
