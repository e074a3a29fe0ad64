import BackendConnections
import BackendProtocol
import Backends
import Catalogues
import Essentials
import FoundationEssentials
import HTTPClient
import Logging
import Model
import ObjectStore
import Postgres
import TestSupport
import Testing

@testable import BackendPoller
@testable import KeyedWorker

/// The scheduler and the handler with a PostgreSQL database, and given results of the back end.
@Suite(.ownThreads) struct PollHandlerTests {
    private static let email = "ana@example.com"
    private static let days = Day(daysSinceEpoch: 100)...Day(daysSinceEpoch: 200)

    @Test func leaderWritesEachRunOnce() throws {
        var acme = try Self.environment()
        var first = try Self.scheduler(acme)
        var second = try Self.scheduler(acme)
        #expect(try first.step(now: Self.time(1)))
        #expect(try !second.step(now: Self.time(1)))
        #expect(try Self.polls(&acme).map(\.run) == [1])
        // The run is in progress: the next one skips it until it is finished.
        try Self.makeDue(&acme)
        #expect(try first.step(now: Self.time(2)))
        #expect(try Self.polls(&acme).map(\.run) == [1])
        try Self.poll(.data(Self.data(["P1"]), [], Self.days), &acme)
        try Self.makeDue(&acme)
        #expect(try first.step(now: Self.time(3)))
        #expect(try Self.polls(&acme).map(\.run) == [3])
        // Nothing is due before the interval has passed.
        #expect(try first.step(now: Self.time(4)))
        #expect(try Self.polls(&acme).map(\.run) == [3])
    }

    @Test func uninitializedAndUnknownPeopleAreNotPolled() throws {
        var acme = try Self.environment()
        try acme.put(
            [
                (UUID(), #"{"userId": "ben@example.com", "path": "/users/ben@example.com", "isInitialized": false}"#),
                (UUID(), #"{"userId": "eve@example.com", "path": "/users/eve@example.com", "isInitialized": true}"#),
            ], .realms, into: .users)
        try acme.addPerson("ben@example.com")
        var scheduler = try Self.scheduler(acme)
        #expect(try scheduler.step(now: Self.time(1)))
        #expect(try Self.polls(&acme).map(\.person) == [Self.email])
    }

    @Test func unchangedPollWritesNothing() throws {
        var acme = try Self.environment()
        let observation = RealmFetcher.Observation.data(
            Self.data(["P1", "P2"]), [Self.entry("1"), Self.entry("2")], Self.days)
        try Self.nextRun(&acme, 1)
        try Self.poll(observation, &acme)
        #expect(try Self.objects([.seenRecord], in: .seen(Self.email), &acme).count == 2)
        try Self.nextRun(&acme, 2)
        let position = try Self.position(&acme)
        try Self.poll(observation, &acme)
        #expect(try Self.position(&acme) == position)
        // A repeated delivery makes no call.
        let next = try Self.decide(.event, &acme)
        if case .finished = next {} else { Issue.record("\(next)") }
    }

    /// A worker reads the same data again: it is compared unless it is cached as equal to the stored state, and again
    /// after stored objects were changed.
    @Test func unchangedReadIsComparedAfterStoredChange() throws {
        var acme = try Self.environment()
        let client = Client()
        defer { client.shutDown() }
        var handler = try Self.handler(client)
        let observation = RealmFetcher.Observation.data(Self.data(["P1"]), [Self.entry("1")], Self.days)
        var run: Int64 = 0
        /// - Returns: Whether any object except the poll was written.
        func poll(_ observation: RealmFetcher.Observation) throws -> Bool {
            run += 1
            try Self.nextRun(&acme, run)
            let position = try Self.position(&acme)
            var batch = WriteBatch(environment: acme.id)
            guard case .call(let call, _) = try Self.decide(.event, by: &handler, into: &batch, &acme) else {
                throw Self.Missing(what: "a call")
            }
            batch = WriteBatch(environment: acme.id)
            let answer = PollHandler.CallResult(found: observation, position: call.position)
            let next = try Self.decide(.result(answer), by: &handler, into: &batch, &acme)
            guard case .finished = next, try batch.commit(on: &acme.connection).conflicts.isEmpty else {
                throw Self.Missing(what: "an end")
            }
            return try Self.position(&acme) != position
        }
        #expect(try poll(observation))
        try Self.settle(&acme)
        #expect(try !poll(observation) && !poll(observation))
        // A change without a position is not detected: there is no comparison.
        try acme.connection.run("UPDATE store.object SET fields = '{}' WHERE kind = \(Kind.reportingTemplate)")
        #expect(try !poll(observation))
        // Different data is compared, and so are objects that were deleted or changed here.
        #expect(try poll(.data(Self.data(["P1"]), [Self.entry("1"), Self.entry("2")], Self.days)))
        #expect(try poll(observation) && !poll(observation) && !poll(observation))
        let seen = try acme.realm(try .seen(Self.email))
        let id = RealmContents.entryID(of: Self.entry("1"), of: Self.email)
        var batch = WriteBatch(environment: acme.id)
        batch.delete(ObjectKey(realm: seen, kind: .seenRecord, id: id), decision: 0)
        _ = try batch.commit(on: &acme.connection)
        #expect(try poll(observation) && !poll(observation))
        let entry = #"{"backendId": "1", "status": "approved", "entryDate": "1970-05-31", "reporting": []}"#
        try acme.put([(id, entry)], .timeEntry, into: try .user(Self.email))
        #expect(try poll(observation), "the entry contradicts the record")
    }

    /// A colleague changes the record, which is observed; Fieldpost writes the person's edit; the colleague changes it
    /// back. The record equals its observation, and not its entry.
    @Test func recordThatWasChangedBackIsReportedOnce() throws {
        var acme = try Self.environment()
        func poll(_ run: Int64) throws -> Int64? {
            try Self.nextRun(&acme, run)
            try Self.poll(.data(Self.data(["P1"]), [Self.entry("1")], Self.days), &acme)
            return try Self.objects([.seenRecord], in: .seen(Self.email), &acme).first?
                .decoded(as: SeenRecord.self, by: JSONDecoder())?.toldRun
        }
        let id = RealmContents.entryID(of: Self.entry("1"), of: Self.email)
        func putEntry(_ day: String, _ text: String, _ time: String) throws {
            let entry = #"""
                {"backendId": "1", "status": "released", "entryDate": "\#(day)", "text": "\#(text)", \#(time),
                 "reporting": []}
                """#
            try acme.put([(id, entry)], .timeEntry, into: try .user(Self.email))
        }
        let hour = #""durationSeconds": 3600"#
        #expect(try poll(1) == nil)
        try putEntry("1970-06-01", "work", hour)
        #expect(try poll(2) == 2 && poll(3) == 2)
        try putEntry("1970-05-31", "other work", hour)
        #expect(try poll(4) == 4 && poll(5) == 4)
        try putEntry("1970-05-31", "work", #""durationSeconds": 3000"#)
        #expect(try poll(6) == 6 && poll(7) == 6)
        // The same duration as an interval is no difference.
        let times = #""startTime": "1970-05-31T08:00:00Z", "endTime": "1970-05-31T09:00:00Z""#
        try putEntry("1970-05-31", "work", #""timeType": "interval", "# + times)
        #expect(try poll(8) == 6)
    }

    @Test func resultOfSupersededPollWritesNothing() throws {
        var acme = try Self.environment()
        try Self.nextRun(&acme, 1)
        guard case .call(let call, _) = try Self.decide(.event, &acme) else {
            Issue.record("no call")
            return
        }
        try Self.nextRun(&acme, 2)
        let answer = PollHandler.CallResult(
            found: .data(Self.data(["P1"]), [Self.entry("1")], Self.days), position: call.position)
        var batch = WriteBatch(environment: acme.id)
        let next = try Self.decide(.result(answer), into: &batch, &acme)
        #expect(try batch.commit(on: &acme.connection).conflicts.isEmpty)
        guard case .call(let again, _) = next else {
            Issue.record("\(next)")
            return
        }
        #expect(again.position > call.position)
        #expect(try Self.objects([.seenRecord], in: .seen(Self.email), &acme).isEmpty)
    }

    /// Two workers read for the same run; the one with the older result commits last.
    @Test func resultOfFinishedRunWritesNothing() throws {
        var acme = try Self.environment()
        try Self.nextRun(&acme, 1)
        let old = try Self.prepare(.data(Self.data(["P1"]), [Self.entry("1")], Self.days), &acme)
        try Self.poll(.data(Self.data(["P1"]), [Self.entry("1"), Self.entry("2")], Self.days), &acme)
        let outcome = try old.commit(on: &acme.connection)
        #expect(outcome.conflicts == [0] && outcome.positions.isEmpty)
        #expect(try Self.objects([.seenRecord], in: .seen(Self.email), &acme).count == 2)
    }

    @Test func deletedRecordsBecomeTombstones() throws {
        var acme = try Self.environment()
        try Self.nextRun(&acme, 1)
        try Self.poll(.data(Self.data(["P1"]), [Self.entry("1"), Self.entry("2")], Self.days), &acme)
        try Self.nextRun(&acme, 2)
        try Self.poll(.data(Self.data(["P1"]), [Self.entry("2")], Self.days), &acme)
        let left = try Self.objects([.seenRecord], in: .seen(Self.email), &acme)
        #expect(left.map(\.key.id) == [RealmContents.entryID(of: Self.entry("2"), of: Self.email)])
    }

    @Test func unavailableBackendIsRetriedAndRefusalWaitsForNextRun() throws {
        var acme = try Self.environment()
        try Self.nextRun(&acme, 1)
        let unavailable = try Self.answer(.failure(.notProcessed(reason: "busy", retryAfter: .seconds(90))), &acme)
        guard case .deferred("busy", .seconds(90), .retryAfter(.seconds(90))) = unavailable else {
            Issue.record("\(unavailable)")
            return
        }
        let refused = try Self.answer(.failure(.refused(["no assignment"])), &acme)
        if case .finished = refused {} else { Issue.record("\(refused)") }
    }
}
