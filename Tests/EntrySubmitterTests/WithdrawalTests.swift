import BackendProtocol
import Backends
import Essentials
import FoundationEssentials
import Model
import ObjectStore
import TestSupport
import Testing

@testable import EntrySubmitter
@testable import KeyedWorker

/// Withdrawals of submitted entries, and edits of submitted entries.
@Suite(.ownThreads) struct WithdrawalTests {
    private typealias World = BackendWorld
    private let id = UUID()

    /// A phone that was offline sends an old draft, without the submit request or with its opposite.
    @Test(
        arguments: BackendWorld.Vendor.allCases, [Mutation.Operation.put, .patch]
    ) func anEditOfAReleasedEntryChangesItsRecord(
        vendor: BackendWorld.Vendor, operation: Mutation.Operation
    ) async throws {
        try await World.run(vendor) { world in
            let record = try await world.release(id)
            let isPut = operation == .put
            try world.write(operation, id, isPut ? try oldDraft(world.draft()) : #"{"text": "old"}"#)
            try await world.work(id)
            let entry = try #require(try world.entry(id))
            let current = try await world.record(try #require(entry.backendId))
            #expect(entry.status == .released && entry.submitRequested == true && entry.backendId == record)
            #expect(entry.text == "old" && current.text == "old")
            #expect(
                current.durationSeconds == (isPut ? 900 : 5_400) && entry.durationSeconds == current.durationSeconds)
        }
    }

    /// Returns all fields that a device may write, without the submit request.
    private func oldDraft(_ entry: TimeEntry) throws -> String {
        let reporting = String(decoding: try JSONEncoder().encode(entry.reporting), as: UTF8.self)
        let template = try #require(entry.reportingTemplate).text
        return
            #"{"text": "old", "durationSeconds": 900, "entryDate": "2015-03-30", "reportingTemplate": "\#(template)", "#
            + #""reporting": \#(reporting)}"#
    }

    /// The record is deleted, and the entry is a draft with the device's values; submitted again, it has a record
    /// again.
    @Test(arguments: BackendWorld.Vendor.allCases) func withdrawnEntryBecomesDraft(
        vendor: BackendWorld.Vendor
    ) async throws {
        try await World.run(vendor) { world in
            _ = try await world.release(id)
            try world.write(.patch, id, #"{"submitRequested": false, "text": "not yet"}"#)
            try await world.work(id)
            var entry = try #require(try world.entry(id))
            #expect(entry.status == .draft && entry.backendId == nil && entry.text == "not yet")
            #expect(try world.lines(id).last?.status == .draft && world.lines(id).last?.code == .withdrawn)
            let gone = try await world.backend.entries(of: world.person, from: World.day, through: World.day)
            #expect(gone.isEmpty)

            try world.write(.patch, id, #"{"submitRequested": true}"#)
            try await world.work(id)
            entry = try #require(try world.entry(id))
            #expect(entry.status == .released)
            #expect(try await world.record(try #require(entry.backendId)).text == "not yet")
        }
    }

    /// A withdrawal that the back end refuses: the entry equals its record, and the log has the reason.
    @Test(arguments: BackendWorld.Vendor.allCases) func refusedWithdrawalRestoresRecordValues(
        vendor: BackendWorld.Vendor
    ) async throws {
        try await World.run(vendor) { world in
            let record = try await world.release(id)
            try await world.switches(#"{"lockedThrough": "2015-03-31"}"#)
            try world.write(.patch, id, #"{"submitRequested": false, "text": "not yet"}"#)
            try await world.work(id)
            let entry = try #require(try world.entry(id))
            #expect(entry.status == .released && entry.submitRequested == true)
            #expect(entry.text == "survey" && entry.backendId == record)
            let line = try #require(try world.lines(id).last)
            #expect(line.status == .released && line.message != nil)
        }
    }

    /// The withdrawal arrives while the call for the first version is in flight, whose outcome stays unknown for some
    /// time.
    @Test(arguments: BackendWorld.Vendor.allCases) func withdrawalDuringCallIsApplied(
        vendor: BackendWorld.Vendor
    ) async throws {
        try await World.run(vendor) { world in
            try world.put(id, world.draft())
            let answer = try await unknown(&world)
            try world.write(.patch, id, #"{"submitRequested": false}"#)
            _ = try world.decide(id, .result(answer))
            try await world.work(id)
            let entry = try #require(try world.entry(id))
            #expect(entry.status == .draft && entry.backendId == nil)
            let left = try await world.backend.entries(of: world.person, from: World.day, through: World.day)
            #expect(left.isEmpty)
        }
    }

    /// An integration deletes the entry meanwhile: its record is deleted too, and no observation is deferred for ever.
    @Test(arguments: BackendWorld.Vendor.allCases) func deletionDuringUnknownOutcomeDeletesRecord(
        vendor: BackendWorld.Vendor
    ) async throws {
        try await World.run(vendor) { world in
            try world.put(id, world.draft())
            let answer = try await unknown(&world)
            try world.tombstone(id)
            // The event of the tombstone arrives during the call; there is no later one.
            _ = try world.decide(id, .event)
            _ = try world.decide(id, .result(answer))
            try await world.settle(id)
            let left = try await world.backend.entries(of: world.person, from: World.day, through: World.day)
            #expect(left.isEmpty)
            try await world.poll()
            #expect(try world.entry(id) == nil)
        }
    }

    /// The device edits the entry while its record is being deleted, and no call can be made afterwards: meanwhile the
    /// entry shows no status of the deleted record.
    @Test(arguments: [(true, EntryStatus.submitted), (false, .draft)])
    func editDuringWithdrawalClearsStatusOfDeletedRecord(submitRequested: Bool, status: EntryStatus) throws {
        var world = SubmissionWorld(seed: 1)
        world.write(.patch, #"{"submitRequested": true}"#)
        let created = try answer(in: &world)
        world.decide(created)
        #expect(world.entry?.status == .released && world.liveRecords.count == 1)

        world.write(.patch, #"{"submitRequested": false}"#)
        let deleted = try answer(in: &world)
        world.write(.patch, #"{"submitRequested": \#(submitRequested), "text": "newer"}"#)
        world.canCall = false
        let decision = SubmissionWorld.rule.decide(world.state(), deleted)
        #expect(decision.entry == .patch(EntryPatch(status: status, backendID: .some(nil))))
        world.commit(decision)
        #expect(world.entry?.status == status && world.lines.last?.status == status && world.liveRecords.isEmpty)

        guard submitRequested else { return }
        world.canCall = true
        let createdAgain = try answer(in: &world)
        world.decide(createdAgain)
        #expect(world.entry?.status == .released && world.liveRecords.map(\.desired.text) == ["newer"])
        #expect(world.lines.map(\.status) == [.submitted, .released, .submitted, .released])
    }

    /// Returns the result of the requested call.
    private func answer(in world: inout SubmissionWorld) throws -> SubmissionRule.Origin {
        world.decide(.change)
        world.fly(0, .none)
        let last = world.answers.popLast()
        let answer = try #require(last)
        return .result(answer.0, version: answer.version)
    }

    /// A call that was processed and whose response was lost.
    private func unknown(_ world: inout World) async throws -> EntryHandler.CallResult {
        guard case .call(let call, _) = try world.decide(id, .event) else { throw Missing() }
        _ = try await world.make(call)
        return call.answer(.unknown(reason: "the answer was lost", recordID: nil))
    }

    private struct Missing: Error {}
}
