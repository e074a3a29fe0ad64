import Essentials
import Foundation
import Model
import TestSupport
import Testing

@testable import RealmGateway

@Suite(.ownThreads) struct EntryLogTests {
    private let id = UUID()
    private let now = Timestamp(millisecondsSinceEpoch: 1_000)

    private func line(_ before: String?, _ after: String) throws -> TimeEntryStatus? {
        try EntryLog.line(
            of: id, before: before.map { Array($0.utf8) }, after: Array(after.utf8), now: now)
    }

    private func line(_ status: EntryStatus, at milliseconds: Int64) -> TimeEntryStatus {
        TimeEntryStatus(
            entry: id, status: status, timestamp: Timestamp(millisecondsSinceEpoch: milliseconds))
    }

    @Test func newEntryGetsALine() throws {
        for fields in ["{}", #"{"status":"draft"}"#] { #expect(try line(nil, fields) == line(.draft, at: 1_000)) }
        #expect(try line(nil, #"{"status":"suggestion"}"#) == line(.suggestion, at: 1_000))
        let fields = String(decoding: EntryLog.fields(with: line(.draft, at: 1_000)), as: UTF8.self)
        #expect(fields == #"{"statusAt":"1970-01-01T00:00:01.000Z"}"#)
    }

    /// The clock of the previous line's writer may be ahead.
    @Test(arguments: [(0, 1_000), (999, 1_000), (1_000, 1_001), (60_000, 60_001)] as [(Int64, Int64)])
    func lineIsNewerThanThePreviousOne(newest: Int64, time: Int64) throws {
        let newest = Timestamp(millisecondsSinceEpoch: newest)
        let before = #"{"status":"invalid","statusAt":"\#(newest)"}"#
        #expect(try line(before, #"{"status":"draft","statusAt":"\#(newest)"}"#) == line(.draft, at: time))
    }

    @Test func editWithoutStatusChangeAddsNoLine() throws {
        let stored = #"{"status":"invalid","statusAt":"1970-01-01T00:00:00.000Z"}"#
        #expect(try line(stored, stored) == nil)
        // Entries of an earlier release have no status.
        #expect(try line("{}", #"{"status":"draft","text":"x"}"#) == nil)
        #expect(try line("{}", #"{"status":"suggestion"}"#) == line(.suggestion, at: 1_000))
    }

    @Test func newestLineMustHaveTheEntrysStatus() throws {
        let entry = TimeEntry(status: .draft, statusAt: Timestamp(millisecondsSinceEpoch: 2))
        let right = [line(.invalid, at: 1), line(.draft, at: 2)]
        #expect(TimeEntryStatus.objection(to: right, of: entry) == nil)
        #expect(TimeEntryStatus.objection(to: [], of: entry) != nil)
        #expect(TimeEntryStatus.objection(to: [line(.draft, at: 1), line(.invalid, at: 2)], of: entry) != nil)
        #expect(TimeEntryStatus.objection(to: [line(.draft, at: 1)], of: entry) != nil)
        #expect(TimeEntryStatus.objection(to: right + [line(.invalid, at: 2)], of: entry) != nil)
    }
}
