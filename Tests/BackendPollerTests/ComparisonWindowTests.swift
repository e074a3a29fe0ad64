import BackendConnections
import Backends
import Catalogues
import Essentials
import FoundationEssentials
import HTTPClient
import Model
import ObjectStore
import Postgres
import TestSupport
import Testing

@testable import BackendPoller
@testable import KeyedWorker

/// A full comparison loads only the objects of its days.
@Suite(.ownThreads) struct ComparisonWindowTests {
    private typealias World = PollHandlerTests

    private static let email = "ana@example.com"
    private static let days = Day(daysSinceEpoch: 100)...Day(daysSinceEpoch: 200)

    /// Adds an entry and its observation on these days.
    ///
    /// - Parameter status: The entry's status. With an unknown one, the entry is undecodable.
    private static func add(
        _ entryDay: Int, _ seenDay: Int, status: String = "released", _ acme: inout TestEnvironment
    ) throws -> UUID {
        let id = UUID()
        let (entry, seen) = (Day(daysSinceEpoch: entryDay), Day(daysSinceEpoch: seenDay))
        let selection = #"[{"context": "\#(UUID().text)", "node": "\#(id.text)"}]"#
        let fields =
            #"{"backendId": "1", "status": "\#(status)", "entryDate": "\#(entry)", "reporting": \#(selection)}"#
        try acme.put([(id, fields)], .timeEntry, into: try .user(email))
        let record = SeenRecord(
            backendId: "1", marker: nil, day: seen, durationSeconds: 0, text: nil, status: "released", references: [:])
        try acme.put(
            [(id, String(decoding: try JSONEncoder().encode(record), as: UTF8.self))], .seenRecord,
            into: try .seen(email))
        return id
    }

    @Test func comparisonLoadsOnlyItsDaysAndRecords() throws {
        var acme = try World.environment()
        let within = try Self.add(100, 200, &acme)
        let moved = try Self.add(200, 201, &acme)
        let movedHere = try Self.add(99, 100, &acme)
        let observation = try Self.add(1, 2, &acme)
        let undecodable = try Self.add(100, 201, status: "unknown", &acme)
        let old = try (0..<5).map { _ in try Self.add(99, 201, &acme) }
        let stored = try StoredPerson(
            acme.realm(try .user(Self.email)), acme.realm(try .seen(Self.email)), Self.days, [observation],
            NodeTree([]),
            acme.id, JSONDecoder(), &acme.connection)
        #expect(Set(stored.entries(before: .max).keys) == [within, moved, observation])
        #expect(Set(stored.seen.keys) == [within, moved, movedHere, observation, undecodable])
        #expect(stored.selectedNodes == Set([within, moved, movedHere, observation, undecodable] + old))
        #expect(stored.newest == (try World.position(&acme)))
    }

    /// The nodes of an entry that is not loaded, or is undecodable, are selected. Those of a deleted one are not.
    @Test func comparisonWithoutRecordsSelectsNodesOfAllEntries() throws {
        var acme = try World.environment()
        let old = try Self.add(99, 99, &acme)
        let undecodable = try Self.add(150, 99, status: "unknown", &acme)
        try acme.delete(.timeEntry, try Self.add(150, 99, &acme), in: try .user(Self.email))
        let stored = try StoredPerson(
            acme.realm(try .user(Self.email)), acme.realm(try .seen(Self.email)), Self.days, [], NodeTree([]),
            acme.id, JSONDecoder(), &acme.connection)
        #expect(stored.entries(before: .max).isEmpty)
        #expect(Set(stored.seen.keys) == [undecodable])
        #expect(stored.selectedNodes == [old, undecodable])
    }

    /// Changes are detected in the change log.
    @Test func unchangedReadLoadsNoObjects() throws {
        var acme = try World.environment()
        let entries = (0..<2_000).map { _ in (UUID(), #"{"entryDate": "1970-01-02", "reporting": []}"#) }
        try acme.put(entries, .timeEntry, into: try .user(Self.email))
        let client = Client()
        defer { client.shutDown() }
        var handler = try World.handler(client)
        let observation = RealmFetcher.Observation.data(World.data(["P1"]), [World.entry("1")], Self.days)
        func fetchedCount() throws -> Int64 {
            try acme.connection.run("SELECT pg_stat_force_next_flush()")
            return try acme.connection.run(
                "SELECT idx_tup_fetch FROM pg_stat_user_tables WHERE schemaname = 'store' AND relname = 'object'")[0]
                .value(0)
        }
        var counts: [Int64] = []
        for run in 1...4 {
            try World.nextRun(&acme, Int64(run))
            let before = try fetchedCount()
            var batch = WriteBatch(environment: acme.id)
            let disposition = try World.decide(.event, by: &handler, into: &batch, &acme)
            guard case .call(let call, _) = disposition else { throw World.Missing(what: "a call") }
            batch = WriteBatch(environment: acme.id)
            let answer = PollHandler.CallResult(found: observation, position: call.position)
            _ = try World.decide(.result(answer), by: &handler, into: &batch, &acme)
            #expect(try batch.commit(on: &acme.connection).conflicts.isEmpty)
            counts.append(try fetchedCount() - before)
            try World.settle(&acme)
        }
        #expect(counts[0] > 2_000)
        #expect(try #require(counts.last) < 200, "\(counts)")
    }
}
