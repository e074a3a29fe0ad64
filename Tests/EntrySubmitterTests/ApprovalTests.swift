import BackendProtocol
import Backends
import FoundationEssentials
import Model
import TestSupport
import Testing

@testable import EntrySubmitter
@testable import KeyedWorker

/// Entries that an approver has processed, or that their device changes while a call is in flight.
@Suite(.ownThreads) struct ApprovalTests {
    private typealias World = BackendWorld
    private let id = UUID()

    /// 20 → 30 → 20 → 40 → 20: each status is a line of the log, and a rejection has its reason.
    @Test func approverStatusChangesAreFollowedInBothDirections() async throws {
        try await World.run(.sap) { world in
            let record = try await world.release(id)
            for code in ["30", "20", "40", "20"] {
                try await world.move(record, to: code, reason: code == "40" ? "0001" : nil)
                try await world.poll()
                let (entry, line) = (try world.entry(id), try world.lines(id).last)
                let expected: EntryStatus = code == "30" ? .approved : code == "40" ? .rejected : .released
                #expect(entry?.status == expected && line?.status == expected)
                #expect(line?.message == (code == "40" ? "Rejected: reason 0001" : nil))
            }
            let statuses = try world.lines(id).map(\.status)
            #expect(statuses == [.submitted, .released, .approved, .released, .rejected, .released])
        }
    }

    /// The successor needs its own approval; the old record is 50 until then, and 60 afterwards.
    @Test func editOfApprovedEntryAdoptsSuccessor() async throws {
        try await World.run(.sap) { world in
            let old = try await approved(&world)
            try world.edit(id) { $0.durationSeconds = 7_200 }
            try await world.work(id)
            let new = try #require(try world.entry(id)?.backendId)
            #expect(new != old)
            #expect(try world.entry(id)?.status == .released)
            #expect(try await world.record(old).status == .changed)
            try await world.move(new, to: "30")
            try await world.poll()
            #expect(try world.entry(id)?.status == .approved)
            #expect(try world.entry(id)?.durationSeconds == 7_200)
            #expect(try await world.record(old).status == .cancelled)
        }
    }

    /// It stays 50 until a corrected successor is approved.
    @Test func rejectedSuccessorKeepsOldRecord() async throws {
        try await World.run(.sap) { world in
            let old = try await approved(&world)
            try world.edit(id) { $0.durationSeconds = 7_200 }
            try await world.work(id)
            let new = try #require(try world.entry(id)?.backendId)
            try await world.move(new, to: "40", reason: "0002")
            try await world.poll()
            #expect(try world.entry(id)?.status == .rejected)
            #expect(try world.lines(id).last?.message == "Rejected: reason 0002")
            #expect(try await world.record(old).status == .changed)
            try world.edit(id) { $0.durationSeconds = 3_600 }
            try await world.work(id)
            #expect(try world.entry(id)?.status == .released)
            #expect(try world.entry(id)?.backendId == new)
            #expect(try await world.record(old).status == .changed)
            try await world.move(new, to: "30")
            #expect(try await world.record(old).status == .cancelled)
            #expect(try await world.record(new).durationSeconds == 3_600)
        }
    }

    /// The response to the update was lost: the successor is found, and no second one created.
    @Test func successorWithLostResponseIsFound() async throws {
        try await World.run(.sap) { world in
            let old = try await approved(&world)
            try await world.switches(#"{"rateLostAfterWrite": 1}"#)
            try world.edit(id) { $0.text = "corrected" }
            let next = try await world.step(id)
            guard case .deferred(_, _, .backendUnavailable) = next else {
                Issue.record("\(next)")
                return
            }
            try await world.switches(#"{"rateLostAfterWrite": 0}"#)
            try await world.work(id)
            let new = try #require(try world.entry(id)?.backendId)
            #expect(new != old)
            let live = try await world.backend.entries(of: world.person, from: World.day, through: World.day)
            #expect(live.map(\.id) == [new] && live.first?.text == "corrected")
        }
    }

    @Test func deletionOfApprovedEntryCancelsRecord() async throws {
        try await World.run(.sap) { world in
            let old = try await approved(&world)
            try world.edit(id) { $0.deleteRequested = true }
            try await world.work(id)
            #expect(try world.entry(id) == nil)
            #expect(try await world.record(old).status == .cancelled)
        }
    }

    /// The entry gets the back end's values and message again, whether or not the poller has reported the approval.
    @Test(arguments: [true, false]) func editAndDeletionAreRevertedIfApprovalIsFinal(isKnown: Bool) async throws {
        try await World.run(.economic) { world in
            let record = try await world.release(id)
            try await world.post("/sandbox/entries", #"{"number": \#(record), "isApproved": true}"#)
            if isKnown { try await world.poll() }
            let refusal = "Time entry cannot be updated or deleted since it is approved."

            try world.edit(id) { ($0.durationSeconds, $0.text) = (7_200, "more") }
            try await world.work(id)
            var entry = try world.entry(id)
            #expect(entry?.durationSeconds == 5_400 && entry?.text == "survey")
            #expect(entry?.status == (isKnown ? .approved : .released))
            #expect(try world.lines(id).last?.message == refusal)
            try world.edit(id) { $0.deleteRequested = true }
            try await world.work(id)
            entry = try world.entry(id)
            #expect(entry?.deleteRequested == false && entry?.durationSeconds == 5_400)
            #expect(try world.lines(id).filter { $0.message == refusal }.count == 2)

            try await world.poll()
            #expect(try world.entry(id)?.status == .approved)
            #expect(try await world.record(record).durationSeconds == 5_400)
        }
    }

    /// The device edits it while the call for the earlier version is in flight, and again before its result.
    @Test(arguments: BackendWorld.Vendor.allCases) func editDuringCallIsSubmittedAfterIt(
        vendor: BackendWorld.Vendor
    ) async throws {
        try await World.run(vendor) { world in
            try world.put(id, world.draft())
            guard case .call(let call, _) = try world.decide(id, .event) else {
                Issue.record("no call")
                return
            }
            try world.edit(id) { $0.durationSeconds = 7_200 }
            // Other workers wait for the end of the call.
            guard case .deferred(_, _, .planned) = try world.decide(id, .event) else {
                Issue.record("two calls at a time")
                return
            }
            let answer = try await world.make(call)
            try world.edit(id) { $0.durationSeconds = 9_000 }
            guard case .reprocess = try world.decide(id, .result(answer)) else {
                Issue.record("the result is not recorded, or treated as final")
                return
            }
            // The released version is not the one that the device displays.
            #expect(try world.entry(id)?.durationSeconds == 9_000)
            #expect(try world.entry(id)?.status == .submitted)
            try await world.work(id)
            let entry = try #require(try world.entry(id))
            #expect(entry.status == .released && entry.durationSeconds == 9_000)
            let records = try await world.backend.entries(of: world.person, from: World.day, through: World.day)
            #expect(records.map(\.durationSeconds) == [9_000] && records.first?.id == entry.backendId)
        }
    }

    /// A deletion while the create is in flight deletes the created record.
    @Test(arguments: BackendWorld.Vendor.allCases) func deletionDuringCreateDeletesCreatedRecord(
        vendor: BackendWorld.Vendor
    ) async throws {
        try await World.run(vendor) { world in
            try world.put(id, world.draft())
            guard case .call(let call, _) = try world.decide(id, .event) else {
                Issue.record("no call")
                return
            }
            try world.edit(id) { $0.deleteRequested = true }
            let answer = try await world.make(call)
            _ = try world.decide(id, .result(answer))
            try await world.work(id)
            #expect(try world.entry(id) == nil)
            let records = try await world.backend.entries(of: world.person, from: World.day, through: World.day)
            #expect(records.isEmpty)
        }
    }

    private func approved(_ world: inout BackendWorld) async throws -> String {
        let record = try await world.release(id)
        try await world.move(record, to: "30")
        try await world.poll()
        try #require(try world.entry(id)?.status == .approved)
        return record
    }
}
