import Essentials
import FoundationEssentials
import Model
import ObjectStore
import Postgres
import TestSupport
import Testing

@testable import EntrySubmitter
@testable import KeyedWorker

/// Notices about entries: of what others decided, once.
@Suite(.ownThreads) struct EntryNoticeTests {
    typealias World = BackendWorld
    private let id = UUID()

    /// An approver rejects the entry; the poll, the event and the submitter's own write are repeated.
    @Test func rejectionNotifiesOnce() async throws {
        try await World.run(.sap) { world in
            let record = try await world.release(id)
            #expect(try world.notices().isEmpty)
            try await world.move(record, to: "30")
            try await world.poll()
            #expect(try world.notices().isEmpty)
            try await world.move(record, to: "20")
            try await world.move(record, to: "40", reason: "0001")
            for _ in 0..<3 {
                try await world.poll()
                try await world.work(id)
            }
            let notices = try world.notices()
            let notice = try #require(notices.first)
            #expect(notices.count == 1 && notice.code == .entryRejected && notice.about == id)
            #expect(notice.text == "Your entry of 2015-03-30 was rejected. Rejected: reason 0001")
            #expect(try world.lines(id).last?.timestamp == notice.timestamp)
            #expect(!notice.isRead)
            // A second rejection is another event.
            try await world.move(record, to: "20")
            try await world.poll()
            try await world.move(record, to: "40", reason: "0002")
            try await world.poll()
            #expect(try world.notices().map(\.code) == [.entryRejected, .entryRejected])
        }
    }

    @Test(arguments: World.Vendor.allCases) func invalidEntryNotifiesOnce(vendor: World.Vendor) async throws {
        try await World.run(vendor) { world in
            var entry = world.draft()
            (entry.durationSeconds, entry.entryDate) = (nil, nil)
            try world.put(id, entry)
            for _ in 0..<2 { try await world.work(id) }
            let notices = try world.notices()
            #expect(notices.map(\.code) == [.entryInvalid])
            #expect(notices.first?.text == "Your entry is invalid. Date is missing; Duration is missing")
            // The corrected entry is released, which the person's device displays.
            let corrected = world.draft()
            try world.put(id, corrected)
            try await world.work(id)
            #expect(try world.entry(id)?.status == .released)
            #expect(try world.notices().count == 1)
        }
    }

    /// The record is changed in the back end; the person's own withdrawal causes no notice.
    @Test func changesInTheBackEndNotify() async throws {
        try await World.run(.economic) { world in
            let record = try await world.release(id)
            try await world.post("/sandbox/entries", #"{"number": \#(record), "numberOfHours": 3}"#)
            for _ in 0..<2 { try await world.poll() }
            let notices = try world.notices()
            #expect(notices.map(\.code) == [.entryChanged])
            #expect(notices.first?.text == "Your entry of 2015-03-30 was changed in the back end")
            try world.edit(id) { $0.submitRequested = false }
            try await world.work(id)
            #expect(try world.entry(id)?.status == .draft)
            #expect(try world.notices().count == 1)
        }
    }

    /// A crash before the commit, and two workers with the same event: the second one's decision conflicts.
    @Test func concurrentWorkersNotifyOnce() async throws {
        try await World.run(.sap) { world in
            var entry = world.draft()
            entry.durationSeconds = nil
            try world.put(id, entry)
            // The first one is lost.
            _ = try world.uncommitted(id)
            let (one, two) = (try world.uncommitted(id), try world.uncommitted(id))
            #expect(try one.commit(on: &world.acme.connection).conflicts.isEmpty)
            #expect(try two.commit(on: &world.acme.connection).conflicts == [0])
            try await world.work(id)
            #expect(try world.notices().map(\.code) == [.entryInvalid])
        }
    }

    // MARK: The rule

    private static let line = SubmissionDecision.LogLine(status: .invalid, message: "no", code: .refused)

    private func notice(
        _ lines: [SubmissionDecision.LogLine], _ status: EntryStatus = .submitted, editPosition: Int64 = 1,
        change: SubmissionDecision.EntryChange? = .patch(EntryPatch(status: .released))
    ) -> Notice? {
        let day = Day(daysSinceEpoch: 16_524)
        let entry = SubmissionState.Entry.live(TimeEntry(status: status, entryDate: day), editPosition: editPosition)
        return EntryNoticeRule.notice(
            SubmissionDecision(entry: change, log: lines, step: .finished), about: SubmissionState(entry: entry),
            entry: id, at: Timestamp(millisecondsSinceEpoch: 0))
    }

    @Test func ownRequestsCauseNoNotice() {
        for code in [nil, .withdrawn, .altered, .rounded] as [TimeEntryStatus.Code?] {
            for status in EntryStatus.allCases where status != .rejected {
                #expect(notice([.init(status: status, message: "m", code: code)]) == nil)
            }
        }
        #expect(notice([]) == nil && notice([.init(status: .rejected)], .rejected) == nil)
        // A later edit is submitted next.
        #expect(notice([Self.line], change: nil) == nil)
        #expect(notice([.init(status: .submitted, message: "gone", code: .recordGone)]) == nil)
    }

    @Test func refusedChangeOfReleasedEntryNotifies() {
        let line = SubmissionDecision.LogLine(status: .released, message: "closed", code: .refused)
        #expect(notice([line])?.text == "Your entry of 2015-03-30 was not changed. closed")
        #expect(notice([Self.line, Self.line])?.text == "Your entry of 2015-03-30 is invalid. no; no")
        #expect(notice([.recordGone])?.code == .entryInvalid)
    }

    /// An entry from the back end that no device has edited.
    @Test func foreignEntryNotifiesOfItsRejectionOnly() {
        let changed = SubmissionDecision.LogLine(status: .released, code: .recordChanged)
        #expect(notice([changed])?.code == .entryChanged && notice([changed], editPosition: 0) == nil)
        #expect(notice([.init(status: .rejected)], .released, editPosition: 0)?.code == .entryRejected)
    }

    @Test func longReasonsFit() throws {
        let line = SubmissionDecision.LogLine(
            status: .invalid, message: String(repeating: "😀", count: 20_000), code: .refused)
        let created = try #require(self.notice([line]))
        #expect(try CanonicalJSON(encoding: created).bytes.count < Kind.notice.fieldsBytesMax)
    }
}
