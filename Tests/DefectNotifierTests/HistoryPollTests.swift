import BackendProtocol
import Essentials
import FoundationEssentials
import Model
import ObjectStore
import Postgres
import TestSupport
import Testing

@testable import DefectNotifier
@testable import KeyedWorker

/// History polls on a real PostgreSQL: who is notified of what, once.
@Suite(.ownThreads) struct HistoryPollTests {
    @Test func ownersAreNotifiedOfOthersActionsOnce() throws {
        var world = try NotifierWorld()
        world.tracker.act("Submit", on: "S1", by: "bo", at: world.now, owner: "ana")
        try world.complete()
        #expect(try world.notices().isEmpty, "the first read writes no notices")
        world.now += 300
        world.tracker.act("Modify", on: "S1", by: "bo", at: world.now)
        world.tracker.act("Modify", on: "S1", by: "ana", at: world.now + 1)
        world.tracker.act("Submit", on: "S2", by: "ana", at: world.now + 2, owner: "bo", headline: "New")
        world.tracker.act("Submit", on: "S3", by: "bo", at: world.now + 3, owner: "unlisted")
        world.now += 10
        try world.complete()
        #expect(world.expected.count == 2)
        try world.expectNotices()
        let writeCount = try world.noticeWriteCount()
        for _ in 0..<3 {
            world.now += 300
            try world.complete()
        }
        try world.expectNotices()
        #expect(try world.noticeWriteCount() == writeCount)
    }

    @Test(arguments: [true, false]) func actionsInOneSecondAreAllNotified(hasHistoryIDs: Bool) throws {
        var world = try NotifierWorld()
        world.tracker.hasHistoryIDs = hasHistoryIDs
        world.tracker.act("Submit", on: "S1", by: "bo", at: world.now, owner: "ana")
        try world.complete()
        world.now += 300
        for user in ["bo", "eva", "unlisted", "bo", "ana"] {
            world.tracker.act("Modify", on: "S1", by: user, at: world.now)
        }
        for _ in 0..<2 {
            world.now += 300
            try world.complete()
        }
        #expect(try world.notices().count == (hasHistoryIDs ? 4 : 3))
        try world.expectNotices()
    }

    /// A row that was notified without its number is not notified again with it.
    @Test func rowNumbersAddedLaterRepeatNoNotice() throws {
        var world = try NotifierWorld()
        world.tracker.hasHistoryIDs = false
        world.tracker.act("Submit", on: "S1", by: "bo", at: world.now, owner: "ana")
        try world.complete()
        world.now += 300
        world.tracker.act("Modify", on: "S1", by: "bo", at: world.now)
        world.now += 10
        try world.complete()
        world.tracker.hasHistoryIDs = true
        world.tracker.act("Modify", on: "S1", by: "bo", at: world.now)
        world.now += 300
        try world.complete()
        #expect(try world.notices().count == 2)
    }

    /// The vendor's sample app moves its watermark when it makes the query, and loses rows of a failed result set.
    @Test func failedPollIsRepeatedByTheNext() throws {
        var world = try NotifierWorld()
        world.tracker.act("Submit", on: "S1", by: "bo", at: world.now, owner: "ana")
        try world.complete()
        world.now += 300
        world.tracker.act("Modify", on: "S1", by: "bo", at: world.now)
        try world.startPoll()
        let watermark = try world.watermark()
        try world.step(.changes, .afterReading)
        #expect(try world.watermark() == watermark && world.notices().isEmpty)
        world.now += 300
        try world.complete()
        #expect(world.expected.count == 1)
        try world.expectNotices()
    }

    /// The vendor's sample app repeats rows that are written between its query and the result.
    @Test func changeDuringAPollIsNotifiedOnce() throws {
        var world = try NotifierWorld()
        world.tracker.act("Submit", on: "S1", by: "bo", at: world.now, owner: "ana")
        try world.complete()
        world.now += 300
        try world.startPoll()
        try world.step(.changes)
        world.tracker.act("Modify", on: "S1", by: "bo", at: world.now)
        while try !world.step(.changes) {}
        for _ in 0..<3 {
            world.now += 300
            try world.complete()
        }
        #expect(world.expected.count == 1)
        try world.expectNotices()
        #expect(try world.noticeWriteCount() == 1)
    }

    @Test func emptyPollWritesOnlyItsPoll() throws {
        var world = try NotifierWorld()
        world.tracker.act("Submit", on: "S1", by: "bo", at: world.now, owner: "ana")
        try world.complete()
        world.now += 300
        let (before, watermark) = (try world.position(), try world.watermark())
        try world.complete()
        #expect(try world.position() == before + 1 && world.watermark() == watermark)
        // The window is over, and with it the rows that are read again.
        world.now += 7_200
        try world.complete()
        #expect(try world.position() == before + 2 && world.watermark() == watermark)
        #expect(world.tracker.queryCount == 3 && world.tracker.pageCount == 3)
    }

    @Test func actionsBeforeAnAssignmentDoNotNotifyTheNewOwner() throws {
        var world = try NotifierWorld()
        world.tracker.act("Submit", on: "S1", by: "eva", at: world.now, owner: "ana")
        try world.complete()
        world.now += 300
        world.tracker.act("Modify", on: "S1", by: "eva", at: world.now)
        try world.complete()
        world.now += 300
        // Within the window: earlier rows are read again, now with the new owner.
        world.tracker.act("Assign", on: "S1", by: "eva", at: world.now, owner: "bo")
        try world.complete()
        try world.expectNotices()
        let codes = try world.notices().map { "\($0.key.path) \($0.value?.code.rawValue ?? "-")" }.sorted()
        #expect(codes == ["/users/ana@example.com defect-modified", "/users/bo@example.com defect-assigned"])
        #expect(try world.mirrors() == world.expectedMirrors)
    }

    @Test func readNoticeStaysAndDeletedNoticeIsNotRecreated() throws {
        var world = try NotifierWorld()
        try world.complete()
        for record in ["S1", "S2"] {
            world.tracker.act("Submit", on: record, by: "bo", at: world.now, owner: "ana")
        }
        world.now += 300
        try world.complete()
        let keys = try world.notices().keys.sorted { $0.id.text < $1.id.text }
        try world.write(
            keys[0], #"{"code":"defect-assigned","text":"t","timestamp":"2026-05-28T20:26:40.000Z","isRead":true}"#)
        try world.write(keys[1], nil)
        // As after a restore, or when another worker has read the rows but not finished.
        try world.acme.connection.run("DELETE FROM defect.seen")
        world.now += 300
        try world.complete()
        let notices = try world.notices()
        #expect(notices.count == 2 && notices[keys[0]]??.isRead == true && notices[keys[1]] == .some(nil))
    }

    @Test func watermarkIsNewestTimeAndOldRowsAreRemoved() throws {
        var world = try NotifierWorld()
        world.tracker.act("Submit", on: "S1", by: "bo", at: world.now, owner: "ana")
        try world.complete()
        let first = try #require(world.tracker.events.last?.time)
        #expect(try world.watermark() == first)
        world.now += 7_200
        world.tracker.act("Modify", on: "S1", by: "bo", at: world.now)
        // A clock that is briefly a year ahead.
        world.tracker.offset += 365 * 86_400
        world.tracker.act("Modify", on: "S1", by: "bo", at: world.now)
        world.tracker.offset -= 365 * 86_400
        let second = world.tracker.events[1].time
        try world.complete()
        #expect(try world.watermark() == second)
        #expect(try world.acme.connection.run("SELECT FROM defect.seen").count == 2)
        world.now += 300
        world.tracker.act("Modify", on: "S1", by: "bo", at: world.now)
        try world.complete()
        try world.expectNotices()
    }

    @Test func changedTrackerStartsWithAnInitialRead() throws {
        var world = try NotifierWorld()
        try world.complete()
        try world.acme.connection.run("UPDATE backend.defect_tracker SET database_name = 'OTHER'")
        world.tracker.act("Submit", on: "S1", by: "bo", at: world.now, owner: "ana")
        world.now += 300
        try world.complete()
        #expect(try world.notices().isEmpty)
        world.tracker.act("Modify", on: "S1", by: "bo", at: world.now)
        world.now += 300
        try world.complete()
        #expect(try world.notices().count == 1)
    }

    @Test func unreadableRowDoesNotBlockOthers() throws {
        var world = try NotifierWorld()
        try world.complete()
        world.tracker.unreadableRows = [
            ["Headline": "without an id"],
            [
                "id": "S9", "Owner": "ana", "history.action_name": "Modify", "history.user_name": "bo",
                "history.action_timestamp": "yesterday",
            ],
            ["id": "S9", "Owner": "ana", "history.user_name": "bo", "history.action_timestamp": "2026-01-01 00:00:00"],
        ]
        world.tracker.act("Submit", on: "S1", by: "bo", at: world.now, owner: "ana")
        world.now += 300
        try world.complete()
        try world.expectNotices()
        #expect(try world.notices().count == 1)
    }

    @Test func personWithoutLoginOrRealmGetsNoNotice() throws {
        var world = try NotifierWorld()
        try world.complete()
        try world.acme.connection.run(
            "INSERT INTO backend.defect_login (environment_id, login, email) VALUES (1, 'new', 'new@example.com')")
        world.tracker.act("Submit", on: "S1", by: "bo", at: world.now, owner: "new")
        world.tracker.act("Submit", on: "S2", by: "bo", at: world.now, owner: "unlisted")
        world.now += 300
        try world.complete()
        #expect(try world.notices().isEmpty)
        let realms = try world.acme.connection.run("SELECT FROM realm.realm WHERE path = '/users/new@example.com'")
        #expect(realms.count == 0)
    }

    @Test func newestNoticesAreRetained() throws {
        var world = try NotifierWorld()
        try world.complete()
        for part in 0..<3 {
            for number in 0..<200 {
                world.tracker.act("Modify", on: "S\(part)-\(number)", by: "eva", at: world.now, owner: "ana")
            }
            world.now += 300
            try world.complete()
        }
        let live = try world.notices().values.compactMap(\.self)
        #expect(live.count == NoticeRetentionRule.countMax)
        #expect(world.expected.count == 600)
        // Retention also applies to people without new notices.
        world.now += 91 * 86_400
        try world.complete(.comparison)
        #expect(try world.notices().values.compactMap(\.self).isEmpty)
    }

    @Test func supersededRunWritesNothing() throws {
        var world = try NotifierWorld()
        try world.complete()
        world.tracker.act("Submit", on: "S1", by: "bo", at: world.now, owner: "ana")
        try world.startPoll()
        try world.step(.changes)
        try world.startPoll()
        // The response belongs to the earlier run: the page is requested again.
        #expect(try !world.step(.changes))
        #expect(try world.notices().isEmpty)
        while try !world.step(.changes) {}
        #expect(try world.notices().count == 1)
    }

    @Test func secondWorkerWithSameResponseConflicts() throws {
        var world = try NotifierWorld()
        try world.complete()
        world.tracker.act("Submit", on: "S1", by: "bo", at: world.now, owner: "ana")
        try world.startPoll()
        try world.step(.changes)
        let (_, slow) = try world.decide(.changes)
        #expect(try world.step(.changes))
        #expect(try slow.commit(on: &world.acme.connection).conflicts == [0])
        #expect(try world.notices().count == 1 && world.noticeWriteCount() == 1)
    }
}
