import Access
import Foundation
import Model
import ObjectStore
import Postgres
import TestSupport
import Testing

@testable import Identity
@testable import RealmGateway

/// A sequence is applied exactly once, and no write is lost.
@Suite(.ownThreads) struct GatewaySequenceTests {
    @Test func repeatsGetTheFirstResultAndGapsTheExpectedSequence() async throws {
        try await withGateway { fixture in
            let phone = try await GatewayDevice(fixture, "ana@example.com")
            let id = UUID()
            let first = [
                await phone.mutation("put", id, "{\"text\":\"a\"}"),
                await phone.mutation("put", UUID(), "{\"colour\":1}"),
            ]
            let response = try await phone.send(first)
            let third = await phone.mutation("patch", id, "{\"text\":\"b\"}")
            let fourth = await phone.mutation("patch", id, "{\"text\":\"c\"}")
            let gap = try await phone.send([fourth])
            #expect(gap.status == 409)
            #expect(gap.problem == "sequence-gap")
            #expect(gap.json["expectedSequence"] as? Int == 3)
            _ = try await phone.send([third])
            // Repeats together with new mutations, after the object has changed.
            let again = try await phone.send(first + [third, fourth])
            #expect(again.results.prefix(2) == response.results.prefix(2))
            #expect(again.json["expectedSequence"] as? Int == 5)
            #expect(try fixture.entries(await phone.realm).values.first?.contains("\"text\":\"c\"") == true)
            // The same client id of another user is another client.
            let ben = try await GatewayDevice(fixture, "ben@example.com")
            let own = try await ben.send(
                [await ben.mutation("put", UUID(), "{\"text\":\"ben\"}")], client: phone.clientID)
            #expect(own.results.first?.hasPrefix("accepted") == true)
        }
    }

    /// Workers process a person's objects in the order of their positions.
    @Test func positionsFollowTheOrderOfARequestsMutations() async throws {
        try await withGateway { fixture in
            let phone = try await GatewayDevice(fixture, "ana@example.com")
            var ids = (0..<20).map { _ in UUID() }
            var mutations: [String] = []
            for id in ids { mutations.append(await phone.mutation("put", id, "{\"text\":\"a\"}")) }
            // The last mutation of each object counts.
            let moved = ids.remove(at: 3)
            ids.append(moved)
            mutations.append(await phone.mutation("patch", moved, "{\"text\":\"b\"}"))
            _ = try await phone.send(mutations)
            let written = try fixture.withDatabase { connection in
                try connection.run(
                    "SELECT id FROM store.object WHERE kind = \(Kind.timeEntry) AND NOT deleted ORDER BY position"
                ).decode(UUID.self)
            }
            #expect(written == ids)
        }
    }

    @Test func deletedResultsAreReportedAsExpired() async throws {
        var limits = GatewayLimits()
        limits.storedResultCountMax = 3
        try await withGateway(limits: limits) { fixture in
            let phone = try await GatewayDevice(fixture, "ana@example.com")
            var sent: [String] = []
            for _ in 0..<6 {
                sent.append(await phone.mutation("put", UUID(), "{}"))
                _ = try await phone.send([sent[sent.count - 1]])
            }
            let again = try await phone.send(sent)
            #expect(again.results.map { $0.hasPrefix("accepted") } == [false, false, false, true, true, true])
            #expect(again.results[0] == "result-expired")
        }
    }

    /// Results are stored for a time after the last new mutation.
    @Test func onlyNewMutationsRenewAClientsExpiry() async throws {
        try await withGateway { fixture in
            let phone = try await GatewayDevice(fixture, "ana@example.com")
            var connection = try Connection(fixture.database)
            var sent: [String] = []
            for (isNew, isDated) in [(true, true), (false, false), (true, true)] {
                try connection.run("UPDATE device.client SET changed_at = '2015-03-30'")
                if isNew { sent.append(await phone.mutation("put", UUID(), "{}")) }
                _ = try await phone.send([sent[sent.count - 1]])
                let rows = try connection.run("SELECT changed_at > '2015-03-31' FROM device.client")
                #expect(try rows.map { try $0.value(0, as: Bool.self) } == [isDated])
            }
        }
    }

    @Test func sequenceSentThroughTwoGatewaysIsAppliedOnce() async throws {
        try await withGateway(count: 2) { fixture in
            let phone = try await GatewayDevice(fixture, "ana@example.com")
            for round in 0..<30 {
                let request = [
                    await phone.mutation("put", UUID(), "{\"text\":\"\(round)\"}"),
                    await phone.mutation("put", UUID(), "{\"text\":\"\(round)\"}"),
                ]
                async let one = phone.send(request, at: 0)
                async let two = phone.send(request, at: 1)
                let responses = try await [one, two]
                #expect(responses.map(\.status) == [200, 200])
                #expect(responses[0].results == responses[1].results)
            }
            #expect(try fixture.entries(await phone.realm).count == 60)
            let changes = try fixture.withDatabase { connection in
                try connection.run("SELECT count(*) FROM realm.change WHERE kind = 'TimeEntry'")[0].value(
                    0, as: Int64.self)
            }
            #expect(changes == 60)
        }
    }

    @Test func workerThatReadBeforeAPatchConflicts() async throws {
        try await withGateway { fixture in
            let phone = try await GatewayDevice(fixture, "ana@example.com")
            let id = UUID()
            let position = try await position(phone.send([await phone.mutation("put", id, "{\"text\":\"a\"}")]))
            let key = ObjectKey(realm: try fixture.realm(try .user("ana@example.com")), kind: .timeEntry, id: id)
            let loaded = try fixture.object(key)
            #expect(loaded.position == Int64(position))
            // The worker has loaded the entry; then the phone patches it, and the worker saves.
            _ = try await phone.send([await phone.mutation("patch", id, "{\"text\":\"b\"}")])
            let missed = try fixture.withDatabase { connection in
                var batch = WriteBatch(environment: fixture.environment)
                try batch.patch(loaded, try CanonicalJSON("{\"status\":\"submitted\",\"text\":\"a\"}"), decision: 7)
                return try batch.commit(on: &connection).conflicts
            }
            #expect(missed == [7])
            #expect(try fixture.entries(await phone.realm).values.first == "{\"status\":\"draft\",\"text\":\"b\"}")
        }
    }

    /// A change between a batch's load and its commit causes a conflict: of an object, or of the client's sequence.
    @Test func changeBetweenLoadAndCommitCausesAConflict() async throws {
        try await withGateway { fixture in
            let phone = try await GatewayDevice(fixture, "ana@example.com")
            let id = UUID()
            _ = try await phone.send([await phone.mutation("put", id, "{\"text\":\"a\"}")])
            let realm = try fixture.realm(try .user("ana@example.com"))
            let key = ObjectKey(realm: realm, kind: .timeEntry, id: id)
            let patch = Mutation(operation: .patch, kind: .timeEntry, id: id, fields: Array("{\"text\":\"b\"}".utf8))
            let other = Mutation(operation: .delete, kind: .timeEntry, id: UUID())
            for (mutation, isObject) in [(patch, true), (other, false)] {
                let isContended = try fixture.withDatabase { connection in
                    let caller = try fixture.caller("ana@example.com", on: &connection)
                    let path = try RealmPath.user("ana@example.com")
                    let uncommitted = try UncommittedMutation(mutation, in: path, by: caller, on: &connection)
                    if isObject {
                        var batch = WriteBatch(environment: fixture.environment)
                        let stored = try RealmObject.stored(key, in: fixture.environment, on: &connection)
                        try batch.patch(stored, CanonicalJSON("{\"status\":\"recorded\"}"), decision: 0)
                        _ = try batch.commit(on: &connection)
                    } else {
                        try connection.run(
                            "INSERT INTO device.client VALUES (1, \(caller.id), \(uncommitted.request.clientID), 2)")
                    }
                    guard case .conflicted = try uncommitted.commit(on: &connection) else { return false }
                    return try connection.run("SELECT FROM device.mutation").count == 1
                }
                #expect(isContended)
            }
            #expect(try fixture.entries(await phone.realm).values.first == "{\"status\":\"recorded\",\"text\":\"a\"}")
        }
    }

    /// A service changes entries while devices patch other fields of them: no write is lost.
    @Test func concurrentWritesOfDevicesAndServicesArePreserved() async throws {
        try await withGateway(count: 2) { fixture in
            let phone = try await GatewayDevice(fixture, "ana@example.com")
            let id = UUID()
            _ = try await phone.send([await phone.mutation("put", id, "{\"text\":\"0\"}")])
            let key = ObjectKey(realm: try fixture.realm(try .user("ana@example.com")), kind: .timeEntry, id: id)
            let service = Task.detached {
                var connection = try Connection(fixture.database)
                for round in 1...150 {
                    var isWritten = false
                    while !isWritten {
                        var batch = WriteBatch(environment: fixture.environment)
                        let stored = try RealmObject.stored(key, in: fixture.environment, on: &connection)
                        try batch.patch(stored, CanonicalJSON("{\"backendId\":\"\(round)\"}"), decision: 0)
                        isWritten = try batch.commit(on: &connection).conflicts.isEmpty
                    }
                }
            }
            for round in 1...60 {
                let response = try await phone.send(
                    [await phone.mutation("patch", id, "{\"text\":\"\(round)\"}")], at: round % 2)
                #expect(response.status == 200 && response.results.first?.hasPrefix("accepted") == true)
            }
            try await service.value
            let stored = try #require(try fixture.entries(await phone.realm).values.first)
            #expect(stored == "{\"backendId\":\"150\",\"status\":\"draft\",\"text\":\"60\"}")
        }
    }

    @Test func mutationsOfOneObjectResultInOneWrite() async throws {
        try await withGateway { fixture in
            let phone = try await GatewayDevice(fixture, "ana@example.com")
            let (kept, gone) = (UUID(), UUID())
            let response = try await phone.send([
                await phone.mutation("put", kept, "{\"text\":\"a\"}"),
                await phone.mutation("patch", kept, "{\"durationSeconds\":60}"),
                await phone.mutation("put", gone, "{\"text\":\"b\"}"),
                await phone.mutation("delete", gone),
                await phone.mutation("patch", gone, "{\"text\":\"c\"}"),
                await phone.mutation("patch", kept, "{\"text\":\"d\"}"),
            ])
            #expect(response.results[0] == response.results[1] && response.results[0] == response.results[5])
            #expect(response.results[4] == "deleted")
            let stored = try fixture.entries(await phone.realm)
            #expect(Array(stored.values) == ["{\"durationSeconds\":60,\"status\":\"draft\",\"text\":\"d\"}"])
            // The stored results equal the returned ones.
            let again = try await phone.send([
                "{\"sequence\":1}", "{\"sequence\":2}", "{\"sequence\":3}", "{\"sequence\":4}", "{\"sequence\":5}",
                "{\"sequence\":6}",
            ])
            #expect(again.results == response.results)
        }
    }

    /// A value that only PostgreSQL rejects causes the rejection of its own mutation, not of others in the transaction.
    @Test func valueRejectedByPostgreSQLIsIsolatedInItsBatch() async throws {
        try await withGateway { fixture in
            try fixture.withDatabase { connection in
                try connection.runScript(
                    """
                    CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                        IF new.fields::json->>'text' = 'poison' THEN
                            RAISE EXCEPTION 'refused' USING ERRCODE = '22000';
                        END IF;
                        RETURN new; END $$;
                    CREATE TRIGGER refuse BEFORE INSERT OR UPDATE ON store.object
                        FOR EACH ROW EXECUTE FUNCTION refuse();
                    """)
            }
            let devices = try await withThrowingTaskGroup(of: [String].self) { group in
                for number in 0..<12 {
                    group.addTask {
                        let phone = try await GatewayDevice(fixture, "person\(number)@example.com")
                        let text = number == 5 ? "poison" : "fine"
                        let request = [
                            await phone.mutation("put", UUID(), "{\"text\":\"before\"}"),
                            await phone.mutation("put", UUID(), "{\"text\":\"\(text)\"}"),
                            await phone.mutation("put", UUID(), "{\"text\":\"after\"}"),
                        ]
                        let response = try await phone.send(request)
                        #expect(response.json["expectedSequence"] as? Int == 4)
                        return response.results
                    }
                }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            let rejected = devices.flatMap { $0 }.filter { !$0.hasPrefix("accepted") }
            #expect(rejected == ["data-refused"])
        }
    }

    private func position(_ response: GatewayResponse) throws -> Int {
        try #require(Int(response.results.first?.split(separator: " ").last ?? ""))
    }
}
