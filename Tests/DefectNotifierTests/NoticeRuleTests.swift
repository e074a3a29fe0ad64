import BackendConnections
import Essentials
import FoundationEssentials
import Model
import TestSupport
import Testing

@testable import DefectNotifier

/// The notifier's rules, as tables.
@Suite(.ownThreads) struct NoticeRuleTests {
    static func row(
        _ action: String, owner: String?, user: String, record: String = "SAMPL00000001", headline: String = "It fails"
    ) -> HistoryRow {
        HistoryRow(
            defect: TrackedDefect(record: record, headline: headline, owner: owner), action: action, user: user,
            time: "2026-03-30 09:15:00", seconds: 0)
    }

    /// Source of the texts: the vendor's sample app.
    @Test(
        arguments: [
            ("Submit", "SAMPL00000001 (It fails) has been assigned to you", Notice.Code.defectAssigned),
            ("Assign", "SAMPL00000001 (It fails) has been assigned to you", .defectAssigned),
            ("Modify", "SAMPL00000001 (It fails) has been modified", .defectModified),
            ("Resolve", "SAMPL00000001 (It fails) has been modified", .defectModified),
        ]) func ownerIsNotifiedOfOthersActions(action: String, text: String, code: Notice.Code)
    {
        let notice = NoticeRule.notice(for: Self.row(action, owner: "ana", user: "bo"))
        #expect(notice == NoticeRule.AddressedNotice(owner: "ana", code: code, text: text))
        #expect(NoticeRule.notice(for: Self.row(action, owner: "ana", user: "ana")) == nil, "a person's own change")
        #expect(NoticeRule.notice(for: Self.row(action, owner: nil, user: "bo")) == nil, "a defect without an owner")
    }

    @Test func longHeadlineIsTruncated() throws {
        let long = String(repeating: "ü", count: 5_000)
        let notice = try #require(NoticeRule.notice(for: Self.row("Modify", owner: "ana", user: "bo", headline: long)))
        #expect(notice.text.utf8.count < 4_096 && notice.text.hasSuffix("ü) has been modified"))
    }

    // MARK: Ids

    @Test func idsDependOnTrackerRowAndPerson() {
        let tracker = TrackerIDs(server: "https://c:8190", repository: "r", database: "d")
        let row = Self.row("Modify", owner: "ana", user: "bo")
        let id = tracker.notice(of: row, to: "ana@example.com")
        #expect(id == tracker.notice(of: Self.row("Modify", owner: "eva", user: "bo"), to: "ana@example.com"))
        var later = row
        later.time = "2026-03-30 09:15:01"
        let others = [
            tracker.notice(of: row, to: "bo@example.com"), tracker.notice(of: later, to: "ana@example.com"),
            tracker.notice(of: Self.row("Assign", owner: "ana", user: "bo"), to: "ana@example.com"),
            tracker.notice(
                of: Self.row("Modify", owner: "ana", user: "bo", record: "SAMPL00000002"), to: "ana@example.com"),
            TrackerIDs(server: "https://c:8190", repository: "r", database: "e")
                .notice(of: row, to: "ana@example.com"),
            TrackerIDs(server: "https://e:8190", repository: "r", database: "d")
                .notice(of: row, to: "ana@example.com"),
            tracker.row(row), tracker.defect("SAMPL00000001"),
        ]
        #expect(Set(others + [id]).count == others.count + 1)
        // Several users may act in one second; one user may act twice if the tracker numbers its rows.
        #expect(tracker.notice(of: Self.row("Modify", owner: "ana", user: "eva"), to: "ana@example.com") != id)
        var numbered = (row, row)
        (numbered.0.id, numbered.1.id) = ("1", "2")
        #expect(tracker.row(numbered.0) != tracker.row(numbered.1))
        #expect(
            tracker.notice(of: numbered.0, to: "ana@example.com")
                != tracker.notice(of: numbered.1, to: "ana@example.com"))
        // Moving a letter from one name to the next makes another tracker.
        #expect(
            TrackerIDs(server: "a", repository: "bc", database: "d")
                != TrackerIDs(server: "ab", repository: "c", database: "d"))
    }

    // MARK: The watermark

    static let now = Timestamp(millisecondsSinceEpoch: 1_780_000_000_000)

    @Test func pollRereadsNinetyMinutes() { #expect(WatermarkRule.since(10_000) == 10_000 - 5_400) }

    @Test func initialWatermarkPrecedesAnyClock() {
        #expect(WatermarkRule.initialWatermark(now: Self.now) < 1_780_000_000 - 12 * 3_600)
    }

    @Test func watermarkIsNewestPlausibleTime() {
        let now = 1_780_000_000
        #expect(WatermarkRule.newest(nil, of: [], now: Self.now) == nil)
        #expect(WatermarkRule.newest(nil, of: [now, now - 5], now: Self.now) == now)
        #expect(WatermarkRule.newest(now + 7, of: [now], now: Self.now) == now + 7)
        // 14 hours is a time zone. A year is an error that would hide all later rows.
        #expect(WatermarkRule.newest(nil, of: [now, now + 14 * 3_600], now: Self.now) == now + 14 * 3_600)
        #expect(WatermarkRule.newest(now, of: [now + 365 * 86_400], now: Self.now) == now)
    }

    // MARK: Retention

    @Test func retentionKeepsNewest500Of90Days() {
        func dated(_ daysAgo: Int, _ number: Int) -> NoticeRetentionRule.DatedNotice {
            NoticeRetentionRule.DatedNotice(
                id: UUID(
                    uuid: (
                        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, UInt8(truncatingIfNeeded: number >> 8),
                        UInt8(truncatingIfNeeded: number)
                    )),
                timestamp: Timestamp(
                    millisecondsSinceEpoch: Self.now.millisecondsSinceEpoch - Int64(daysAgo) * 86_400_000))
        }
        let recent = (0..<499).map { dated(1, $0) }
        #expect(NoticeRetentionRule.surplus(of: recent, now: Self.now).isEmpty)
        let old = [dated(90, 1_000), dated(91, 1_001)]
        #expect(NoticeRetentionRule.surplus(of: recent + old, now: Self.now) == [old[1].id])
        let (older, newer) = (dated(2, 2_000), dated(0, 2_001))
        #expect(NoticeRetentionRule.surplus(of: [older] + recent + [newer], now: Self.now) == [older.id])
        // The choice among equally new notices does not depend on their order.
        let many = (0..<502).map { dated(1, $0) }
        #expect(NoticeRetentionRule.surplus(of: many.reversed(), now: Self.now) == [many[500].id, many[501].id])
    }

    // MARK: Mirrors

    @Test func ownerAndSubmitterGetMirrors() {
        func mirrors(_ owner: String?, _ submitter: String?) -> [Int32: [Bool]] {
            MirrorRule.mirrors(
                of: TrackedDefect(record: "S1", headline: "h", owner: owner, submitter: submitter),
                people: ["ana": 1, "bo": 2]
            ).mapValues { [$0.isAssignedToMe, $0.isReportedByMe] }
        }
        #expect(mirrors("ana", "bo") == [1: [true, false], 2: [false, true]])
        #expect(mirrors("ana", "ana") == [1: [true, true]])
        #expect(mirrors("unlisted", "bo") == [2: [false, true]])
        #expect(mirrors(nil, nil).isEmpty)
    }

    @Test func differenceIsPutOrDelete() {
        let (one, two) = (Defect(record: "S1", headline: "h"), Defect(record: "S1", headline: "i"))
        #expect(MirrorRule.difference(stored: one, exists: true, desired: one) == nil)
        #expect(MirrorRule.difference(stored: one, exists: true, desired: two) == .put(two))
        #expect(MirrorRule.difference(stored: nil, exists: false, desired: two) == .put(two))
        #expect(MirrorRule.difference(stored: nil, exists: true, desired: two) == .put(two))
        #expect(MirrorRule.difference(stored: one, exists: true, desired: nil) == .delete)
        #expect(MirrorRule.difference(stored: nil, exists: false, desired: nil) == nil)
    }

    // MARK: Schedule

    @Test func scopesAreDueAfterTheirIntervals() {
        func due(_ changes: Duration?, _ comparison: Duration?) -> [Int64] {
            DefectScheduleRule.due(
                [
                    .changes: DefectScheduleRule.LastRun(run: 7, age: changes),
                    .comparison: DefectScheduleRule.LastRun(run: 3, age: comparison),
                ], interval: .seconds(300), comparisonInterval: .seconds(3_600)
            ).map(\.run)
        }
        #expect(due(.seconds(299), .seconds(3_599)).isEmpty)
        #expect(due(.seconds(300), .seconds(3_599)) == [8])
        #expect(due(.seconds(0), .seconds(3_600)) == [4])
        #expect(due(.seconds(0), nil) == [4], "requested")
        let first = DefectScheduleRule.due([:], interval: .seconds(300), comparisonInterval: .seconds(3_600))
        #expect(first.map(\.scope) == [.changes, .comparison] && first.allSatisfy { $0.run == 1 })
    }
}
