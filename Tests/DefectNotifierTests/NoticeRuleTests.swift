import BackendConnections
import Essentials
import FoundationEssentials
import Model
import Testing

@testable import DefectNotifier

/// The rules, as tables.
@Suite struct NoticeRuleTests {
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
        ]) func anOwnerIsToldOfWhatOthersDo(action: String, text: String, code: Notice.Code)
    {
        let told = NoticeRule.told(of: Self.row(action, owner: "ana", user: "bo"))
        #expect(told == NoticeRule.Told(owner: "ana", code: code, text: text))
        #expect(NoticeRule.told(of: Self.row(action, owner: "ana", user: "ana")) == nil, "a person's own change")
        #expect(NoticeRule.told(of: Self.row(action, owner: nil, user: "bo")) == nil, "nobody's defect")
    }

    @Test func aLongHeadlineIsCut() throws {
        let long = String(repeating: "ü", count: 5_000)
        let told = try #require(NoticeRule.told(of: Self.row("Modify", owner: "ana", user: "bo", headline: long)))
        #expect(told.text.utf8.count < 4_096 && told.text.hasSuffix("ü) has been modified"))
    }

    // MARK: Ids

    @Test func idsAreOfWhatTheyAreAbout() {
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
        // Several users may act in one second, and one user twice where the tracker numbers what happened.
        #expect(tracker.notice(of: Self.row("Modify", owner: "ana", user: "eva"), to: "ana@example.com") != id)
        var numbered = (row, row)
        (numbered.0.id, numbered.1.id) = ("1", "2")
        #expect(tracker.row(numbered.0) != tracker.row(numbered.1))
        #expect(
            tracker.notice(of: numbered.0, to: "ana@example.com")
                != tracker.notice(of: numbered.1, to: "ana@example.com"))
        // What is the end of one name is not the beginning of the next.
        #expect(
            TrackerIDs(server: "a", repository: "bc", database: "d")
                != TrackerIDs(server: "ab", repository: "c", database: "d"))
    }

    // MARK: The watermark

    static let now = Timestamp(millisecondsSinceEpoch: 1_780_000_000_000)

    @Test func ninetyMinutesAreReadAgain() { #expect(WatermarkRule.since(10_000) == 10_000 - 5_400) }

    @Test func theFirstWatermarkIsBeforeWhatAnyClockShows() {
        #expect(WatermarkRule.beginning(now: Self.now) < 1_780_000_000 - 12 * 3_600)
    }

    @Test func theWatermarkIsTheNewestTimeThatCanBe() {
        let now = 1_780_000_000
        #expect(WatermarkRule.newest(nil, of: [], now: Self.now) == nil)
        #expect(WatermarkRule.newest(nil, of: [now, now - 5], now: Self.now) == now)
        #expect(WatermarkRule.newest(now + 7, of: [now], now: Self.now) == now + 7)
        // 14 hours are a time zone, a year is a mistake that would hide all that happens until then.
        #expect(WatermarkRule.newest(nil, of: [now, now + 14 * 3_600], now: Self.now) == now + 14 * 3_600)
        #expect(WatermarkRule.newest(now, of: [now + 365 * 86_400], now: Self.now) == now)
    }

    // MARK: What is kept

    @Test func theNewestFiveHundredOfNinetyDaysAreKept() {
        func kept(_ daysAgo: Int, _ number: Int) -> NoticeKeepRule.Kept {
            NoticeKeepRule.Kept(
                id: UUID(
                    uuid: (
                        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, UInt8(truncatingIfNeeded: number >> 8),
                        UInt8(truncatingIfNeeded: number)
                    )),
                timestamp: Timestamp(
                    millisecondsSinceEpoch: Self.now.millisecondsSinceEpoch - Int64(daysAgo) * 86_400_000))
        }
        let recent = (0..<499).map { kept(1, $0) }
        #expect(NoticeKeepRule.surplus(of: recent, now: Self.now).isEmpty)
        let old = [kept(90, 1_000), kept(91, 1_001)]
        #expect(NoticeKeepRule.surplus(of: recent + old, now: Self.now) == [old[1].id])
        let (older, newer) = (kept(2, 2_000), kept(0, 2_001))
        #expect(NoticeKeepRule.surplus(of: [older] + recent + [newer], now: Self.now) == [older.id])
        // Of equally new ones, always the same.
        let many = (0..<502).map { kept(1, $0) }
        #expect(NoticeKeepRule.surplus(of: many.reversed(), now: Self.now) == [many[500].id, many[501].id])
    }

    // MARK: Mirrors

    @Test func aDefectIsMirroredWhereItsOwnerAndItsSubmitterAre() {
        func mirrors(_ owner: String?, _ submitter: String?) -> [Int32: [Bool]] {
            MirrorRule.mirrors(
                of: TrackedDefect(record: "S1", headline: "h", owner: owner, submitter: submitter),
                people: ["ana": 1, "bo": 2]
            ).mapValues { [$0.isAssignedToMe, $0.isReportedByMe] }
        }
        #expect(mirrors("ana", "bo") == [1: [true, false], 2: [false, true]])
        #expect(mirrors("ana", "ana") == [1: [true, true]])
        #expect(mirrors("somebody", "bo") == [2: [false, true]])
        #expect(mirrors(nil, nil).isEmpty)
    }

    @Test func whatDiffersIsWritten() {
        let (one, two) = (Defect(record: "S1", headline: "h"), Defect(record: "S1", headline: "i"))
        #expect(MirrorRule.difference(stored: one, isThere: true, wanted: one) == nil)
        #expect(MirrorRule.difference(stored: one, isThere: true, wanted: two) == .put(two))
        #expect(MirrorRule.difference(stored: nil, isThere: false, wanted: two) == .put(two))
        #expect(MirrorRule.difference(stored: nil, isThere: true, wanted: two) == .put(two))
        #expect(MirrorRule.difference(stored: one, isThere: true, wanted: nil) == .delete)
        #expect(MirrorRule.difference(stored: nil, isThere: false, wanted: nil) == nil)
    }

    // MARK: When

    @Test func eachScopeHasItsInterval() {
        func due(_ changes: Duration?, _ comparison: Duration?) -> [Int64] {
            DefectScheduleRule.due(
                [
                    .changes: DefectScheduleRule.Begun(run: 7, age: changes),
                    .comparison: DefectScheduleRule.Begun(run: 3, age: comparison),
                ], interval: .seconds(300), comparisonInterval: .seconds(3_600)
            ).map(\.run)
        }
        #expect(due(.seconds(299), .seconds(3_599)).isEmpty)
        #expect(due(.seconds(300), .seconds(3_599)) == [8])
        #expect(due(.seconds(0), .seconds(3_600)) == [4])
        #expect(due(.seconds(0), nil) == [4], "it is asked for")
        let first = DefectScheduleRule.due([:], interval: .seconds(300), comparisonInterval: .seconds(3_600))
        #expect(first.map(\.scope) == [.changes, .comparison] && first.allSatisfy { $0.run == 1 })
    }
}
