import Essentials
import Foundation
import Model
import ObjectStore
import Postgres
import TestSupport
import Testing

@testable import RealmGateway

/// A device's writes of an entry in the entry's status log.
@Suite(.ownThreads) struct GatewayLogTests {
    private func entry(_ id: UUID, _ fixture: GatewayFixture, _ phone: GatewayDevice) async throws -> TimeEntry? {
        let fields = try fixture.stored(await phone.realm)["TimeEntry/\(id.text)"]
        return try fields.map { try JSONDecoder().decode(TimeEntry.self, from: Data($0.utf8)) }
    }

    /// All lines of the realm, the oldest first.
    private func lines(_ fixture: GatewayFixture, _ phone: GatewayDevice) async throws -> [TimeEntryStatus] {
        try fixture.stored(await phone.realm).filter { $0.key.hasPrefix("TimeEntryStatus/") }.values.map {
            try JSONDecoder().decode(TimeEntryStatus.self, from: Data($0.utf8))
        }.sorted { $0.timestamp < $1.timestamp }
    }

    @Test func newestLineHasTheStatus() async throws {
        try await withGateway { fixture in
            let phone = try await GatewayDevice(fixture, "ana@example.com")
            let id = UUID()
            func send(_ operation: String, _ fields: String) async throws -> [EntryStatus] {
                let response = try await phone.send([await phone.mutation(operation, id, fields)])
                try #require(response.results.first?.hasPrefix("accepted") == true)
                let entry = try #require(try await entry(id, fixture, phone))
                let lines = try await lines(fixture, phone)
                #expect(TimeEntryStatus.objection(to: lines, of: entry) == nil)
                #expect(lines.allSatisfy { $0.entry == id && $0.message == nil })
                return lines.map(\.status)
            }
            #expect(try await send("put", #"{"status":"suggestion"}"#) == [.suggestion])
            #expect(try await send("patch", #"{"text":"roof"}"#) == [.suggestion])
            #expect(try await send("put", #"{"text":"roof","status":"draft"}"#) == [.suggestion, .draft])
            #expect(try await send("put", #"{"submitRequested":true}"#) == [.suggestion, .draft])
            // The clock of the service that rejected it is ahead.
            let ahead = Timestamp(millisecondsSinceEpoch: Timestamp.now().millisecondsSinceEpoch + 60_000)
            let realm = try fixture.realm(try .user("ana@example.com"))
            let stored = try fixture.object(ObjectKey(realm: realm, kind: .timeEntry, id: id))
            try fixture.write { batch in
                try batch.patch(
                    stored, CanonicalJSON(#"{"status":"invalid","statusAt":"\#(ahead)"}"#), decision: 0)
                let line = #"{"entry":"\#(id.text)","status":"invalid","timestamp":"\#(ahead)"}"#
                batch.put(
                    ObjectKey(realm: realm, kind: .timeEntryStatus, id: UUID()), try CanonicalJSON(line), decision: 0)
            }
            let again = try await send("patch", #"{"submitRequested":true}"#)
            #expect(again == [.suggestion, .draft, .invalid, .draft])
        }
    }

    @Test func linesAreDeletedWithTheirEntry() async throws {
        try await withGateway { fixture in
            let phone = try await GatewayDevice(fixture, "ana@example.com")
            let (gone, kept, short) = (UUID(), UUID(), UUID())
            _ = try await phone.send([
                await phone.mutation("put", gone, #"{"status":"suggestion"}"#),
                await phone.mutation("put", kept, "{}"),
                await phone.mutation("put", short, "{}"),
                await phone.mutation("delete", short),
            ])
            #expect(try await Set(lines(fixture, phone).map(\.entry)) == [gone, kept])
            try await phone.sync()
            #expect(await phone.shown(phone.realm).count == 4)
            _ = try await phone.send([
                await phone.mutation("patch", gone, #"{"status":"draft"}"#), await phone.mutation("delete", gone),
            ])
            #expect(try await lines(fixture, phone).map(\.entry) == [kept])
            try await phone.sync()
            #expect(await phone.shown(phone.realm).count == 2)
        }
    }
}
