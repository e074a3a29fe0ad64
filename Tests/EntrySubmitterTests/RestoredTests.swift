import BackendProtocol
import Backends
import Essentials
import FoundationEssentials
import KeyedWorker
import Model
import Postgres
import TestSupport
import Testing

@testable import EntrySubmitter

/// A restored database has lost which entries were sent to the back end.
@Suite(.ownThreads) struct RestoredTests {
    /// The ledger is missing or outdated: the record is found by its marker and adopted.
    @Test(arguments: BackendWorld.Vendor.allCases, [Lost.row, .outcome, .editToo])
    func entrySentBeforeRestoreIsNotSentAgain(_ vendor: BackendWorld.Vendor, _ lost: Lost) async throws {
        try await BackendWorld.run(vendor) { world in
            let id = UUID()
            let record = try await world.release(id)
            switch lost {
            case .row: try world.acme.connection.run("DELETE FROM submission.ledger")
            case .outcome, .editToo:
                // The state after an earlier refusal.
                try world.acme.connection.run(
                    "UPDATE submission.ledger SET backend_id = NULL, confirmed = NULL, edit_position = 1")
            }
            try world.acme.connection.run("UPDATE realm.lineage SET restored_at = now() - interval '1 hour'")
            var entry = world.draft()
            if lost == .editToo { entry.text = "survey, and more" }
            try world.put(id, entry)
            try await world.work(id)

            let current = try #require(try world.entry(id))
            #expect(current.status == .released && current.text == entry.text)
            let marker = EntryMarker.marker(of: id)
            let records = try await world.backend.lookUp(marker: marker, of: world.person, on: BackendWorld.day)
            let live = records.filter { $0.status == .released }
            #expect(live.count == 1, "\(records)")
            #expect(live.first?.text == entry.text && live.first?.id == current.backendId)
            if lost != .editToo { #expect(live.first?.id == record) }
        }
    }

    /// The ledger is lost, and the entry's choices are no longer available: the entry keeps the back end's status and
    /// is deferred. Later edits are refused.
    @Test(arguments: BackendWorld.Vendor.allCases)
    func entryWithUnavailableChoiceStaysReleased(_ vendor: BackendWorld.Vendor) async throws {
        try await BackendWorld.run(vendor) { world in
            let (id, edited) = (UUID(), UUID())
            let record = try await world.release(id)
            _ = try await world.release(edited)
            try world.acme.connection.run("DELETE FROM submission.ledger")
            let node = try #require(world.draft().reporting.first?.node)
            let gone = UUID()
            func replace(_ old: UUID, by new: UUID) -> Statement {
                """
                UPDATE store.object SET fields = replace(fields, \(old.text), \(new.text))
                WHERE kind = \(Kind.timeEntry)
                """
            }
            try world.acme.connection.run(replace(node, by: gone))

            guard case .deferred(let reason, _, .attempt) = try await world.step(id) else {
                Issue.record("it does not wait")
                return
            }
            #expect(reason.contains("its ledger is lost") && reason.contains("not available any more"), "\(reason)")
            #expect(try world.entry(id)?.status == .released)
            try world.edit(edited) { $0.text = "survey, and more" }
            try await world.work(edited)
            #expect(try world.entry(edited)?.status == .invalid)

            try world.acme.connection.run(replace(gone, by: node))
            try await world.work(id)
            let current = try #require(try world.entry(id))
            #expect(current.status == .released && current.backendId == record)
            let phases = try world.acme.connection.run(
                "SELECT phase FROM submission.ledger WHERE entry_id = \(id)")
            #expect(try phases.map { try $0.decode(String.self) } == ["settled"])
        }
    }

    /// An entry that was never sent is sent; one of a later day is not looked up.
    @Test func newEntryIsSent() async throws {
        try await BackendWorld.run(.sap) { world in
            try world.acme.connection.run("UPDATE realm.lineage SET restored_at = now() - interval '1 hour'")
            let record = try await world.release(UUID())
            #expect(try await world.record(record).status == .released)
            // The day of the entries is more than a year after this restore.
            try world.acme.connection.run("UPDATE realm.lineage SET restored_at = '2014-03-28'")
            let late = try Self.decide(&world)
            #expect(late == "create")
            try world.acme.connection.run("UPDATE realm.lineage SET restored_at = '2014-03-31'")
            let first = try Self.decide(&world)
            #expect(first == "find nil [\(BackendWorld.day)]")
        }
    }

    /// A call of the lost ledger must have ended before the lookup.
    @Test func callFromBeforeRestoreDelaysLookup() async throws {
        try await BackendWorld.run(.sap) { world in
            try world.acme.connection.run("UPDATE realm.lineage SET restored_at = now()")
            let step = try Self.decide(&world)
            #expect(step == "park")
        }
    }

    /// Returns the first decision about a new entry.
    private static func decide(_ world: inout BackendWorld) throws -> String {
        let id = UUID()
        try world.put(id, world.draft())
        let next = try world.decide(id, .event)
        switch next {
        case .call(let call, _):
            switch call.submission.action {
            case .create: return "create"
            case .find(let id, let days): return "find \(id ?? "nil") \(days)"
            case .update, .delete: return "another call"
            }
        case .deferred: return "park"
        case .finished, .reprocess, .deadLettered: return "nothing"
        }
    }

    enum Lost: Sendable {
        /// The ledger row.
        case row
        /// The outcome in the ledger row.
        case outcome
        /// The outcome, and the entry was edited since.
        case editToo
    }
}
