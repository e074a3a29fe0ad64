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

/// Polls with people's own logins, on a real PostgreSQL.
@Suite(.ownThreads) struct OwnLoginPollTests {
    @Test func ownLoginsNotifyOfOthersActionsOnce() throws {
        var world = try NotifierWorld.withOwnLogins()
        world.tracker.act("Submit", on: "S1", by: "bo", at: world.now, owner: "ana")
        try world.completeAll()
        #expect(try world.notices().isEmpty, "the first read writes no notices")
        world.now += 300
        world.tracker.act("Modify", on: "S1", by: "bo", at: world.now)
        world.tracker.act("Modify", on: "S1", by: "ana", at: world.now + 1)
        world.tracker.act("Submit", on: "S2", by: "ana", at: world.now + 2, owner: "bo", headline: "New")
        world.now += 10
        try world.completeAll()
        #expect(world.expected.count == 2)
        try world.expectNotices()
        #expect(try world.mirrors() == world.expectedMirrors)
        let writeCount = try world.noticeWriteCount()
        let position = try world.position()
        for _ in 0..<3 {
            world.now += 300
            try world.completeAll()
        }
        #expect(try world.noticeWriteCount() == writeCount)
        #expect(try world.position() == position + 9, "one poll per person and interval, without other writes")
    }

    /// Two queries for each poll: assigned defects, and the others.
    @Test func ownLoginPollTakesTwoQueries() throws {
        var world = try NotifierWorld.withOwnLogins()
        try world.complete(as: "ana")
        try world.complete(.comparison, as: "ana")
        #expect(world.tracker.queryCount == 4 && world.tracker.pageCount == 4)
    }

    @Test func reassignedDefectLosesItsMirrorWithTheNextPoll() throws {
        var world = try NotifierWorld.withOwnLogins()
        world.tracker.add(TrackedDefect(record: "S1", headline: "One", owner: "ana", submitter: "unlisted"))
        world.tracker.add(TrackedDefect(record: "S2", headline: "Two", owner: "eva", submitter: "ana"))
        try world.completeAll(.comparison)
        try world.completeAll()
        world.now += 300
        world.tracker.act("Assign", on: "S1", by: "unlisted", at: world.now, owner: "bo")
        world.tracker.act("Modify", on: "S2", by: "unlisted", at: world.now, headline: "Other")
        try world.complete(as: "ana")
        let mirrors = try world.mirrors()
        #expect(mirrors["/users/ana@example.com"] == ["S2 Other - false true"])
        #expect(mirrors["/users/bo@example.com"] == nil && mirrors["/users/eva@example.com"]?.count == 1)
        try world.complete(as: "bo")
        try world.complete(as: "eva")
        #expect(try world.mirrors() == world.expectedMirrors)
        try world.expectNotices()
    }

    @Test func defectInvisibleToItsOwnerIsNotNotified() throws {
        var world = try NotifierWorld.withOwnLogins()
        try world.completeAll()
        world.tracker.readers = ["S1": ["bo"], "S2": ["ana"]]
        for record in ["S1", "S2"] {
            world.tracker.act("Submit", on: record, by: "eva", at: world.now, owner: "ana")
        }
        world.now += 300
        try world.completeAll()
        try world.completeAll(.comparison)
        try world.expectNotices()
        #expect(try world.notices().count == 1)
        #expect(try world.mirrors() == ["/users/ana@example.com": ["S2 Defect S2 Submitted true false"]])
    }

    @Test func ownLoginComparisonChangesOnlyItsPersonsMirrors() throws {
        var world = try NotifierWorld.withOwnLogins()
        for number in 0..<12 {
            world.tracker.add(
                TrackedDefect(
                    record: "S\(number)", headline: "h", owner: ["ana", "bo", "eva"][number % 3],
                    submitter: ["ana", "bo", "eva"][number / 3 % 3]))
        }
        try world.completeAll(.comparison)
        #expect(try world.mirrors() == world.expectedMirrors)
        let before = try world.mirrors()
        for number in 0..<6 { world.tracker.delete("S\(number)") }
        try world.complete(.comparison, as: "ana")
        var after = try world.mirrors()
        #expect(after["/users/ana@example.com"] == world.expectedMirrors["/users/ana@example.com"])
        after["/users/ana@example.com"] = before["/users/ana@example.com"]
        #expect(after == before)
        try world.completeAll(.comparison)
        #expect(try world.mirrors() == world.expectedMirrors)
    }

    /// Missed changes are notified when the person has stored another login. Other people's polls continue.
    @Test func refusedLoginIsReportedAndUnusedUntilReplaced() throws {
        var world = try NotifierWorld.withOwnLogins()
        try world.completeAll()
        world.tracker.refusedLogins = ["ana"]
        world.tracker.act("Submit", on: "S1", by: "eva", at: world.now, owner: "ana")
        world.tracker.act("Submit", on: "S2", by: "eva", at: world.now, owner: "bo")
        world.now += 300
        try world.startPoll(as: "ana")
        while try !world.step(.changes, as: "ana") {}
        try world.complete(as: "bo")
        let account = try OwnLoginFixture.account(of: "ana@example.com", in: &world.acme)
        #expect(account?.status == .refused && account?.reason == "no ana" && account?.user == "ana")
        #expect(try world.notices().count == 1)
        // A poll that exists nevertheless sends no request and reports nothing.
        let (position, queryCount) = (try world.position(), world.tracker.queryCount)
        world.tracker.refusedLogins = []
        try world.startPoll(as: "ana")
        #expect(try world.step(.changes, as: "ana"))
        #expect(try world.position() == position + 1 && world.tracker.queryCount == queryCount)
        try OwnLoginFixture.store("ana", password: "new", of: "ana@example.com", in: &world.acme)
        world.now += 7_200
        try world.completeAll()
        try world.expectNotices()
        #expect(try world.notices().count == 2)
    }

    /// A response to an earlier login does not count for a new one.
    @Test func loginReplacedDuringAPollRestartsIt() throws {
        var world = try NotifierWorld.withOwnLogins()
        try world.completeAll()
        world.tracker.act("Submit", on: "S1", by: "eva", at: world.now, owner: "ana")
        world.now += 300
        world.tracker.refusedLogins = ["ana"]
        try world.startPoll(as: "ana")
        try world.step(.changes, as: "ana")
        world.tracker.refusedLogins = []
        try OwnLoginFixture.store("ana", password: "new", of: "ana@example.com", in: &world.acme)
        while try !world.step(.changes, as: "ana") {}
        #expect(try OwnLoginFixture.account(of: "ana@example.com", in: &world.acme)?.status == .good)
        #expect(try world.notices().count == 1)
    }

    @Test func personWithoutLoginIsNotNotified() throws {
        var world = try NotifierWorld.withOwnLogins()
        try world.completeAll()
        try world.acme.connection.run("DELETE FROM backend.defect_account")
        world.tracker.act("Submit", on: "S1", by: "eva", at: world.now, owner: "ana")
        let queryCount = world.tracker.queryCount
        try world.startPoll(as: "ana")
        #expect(try world.step(.changes, as: "ana"))
        // A poll of the absent account writes no notices either.
        try world.startPoll()
        #expect(try world.step(.changes))
        #expect(try world.notices().isEmpty && world.tracker.queryCount == queryCount)
    }

    @Test func undecodableAccountDoesNotBlockOthers() throws {
        var world = try NotifierWorld.withOwnLogins()
        try world.completeAll()
        try world.acme.connection.run(
            """
            UPDATE store.object SET fields = '{}' WHERE kind = \(Kind.defectAccount)
                AND realm_id = (SELECT id FROM realm.realm WHERE path = '/users/ana@example.com')
            """)
        for login in ["ana", "bo"] {
            world.tracker.act("Submit", on: "S-\(login)", by: "eva", at: world.now, owner: login)
            try world.startPoll(as: login)
            try world.step(.changes, as: login)
        }
        try world.stepTogether(as: ["ana", "bo"])
        while try !world.step(.changes, as: "bo") {}
        #expect(try world.notices().keys.map(\.path) == ["/users/bo@example.com"])
    }

    @Test func undecryptableLoginIsDeferred() throws {
        var world = try NotifierWorld.withOwnLogins()
        try world.acme.connection.run("UPDATE backend.defect_account SET secret = ''")
        try world.startPoll(as: "ana")
        let (disposition, _) = try world.decide(.changes, as: "ana")
        guard case .deferred(_, _, .planned) = disposition else {
            Issue.record("\(disposition)")
            return
        }
    }

    /// A defect is reassigned between two people's reads, and both responses are processed in one batch: the earlier
    /// action notifies one of them.
    @Test func pollsOfOneBatchNotifyARowOnce() throws {
        var world = try NotifierWorld.withOwnLogins()
        try world.completeAll()
        world.tracker.act("Modify", on: "S1", by: "eva", at: world.now, owner: "ana")
        world.now += 300
        try world.startPoll(as: "ana")
        try world.step(.changes, as: "ana")
        world.tracker.act("Assign", on: "S1", by: "eva", at: world.now, owner: "bo")
        try world.startPoll(as: "bo")
        try world.step(.changes, as: "bo")
        for _ in 0..<3 { try world.stepTogether(as: ["ana", "bo"]) }
        let notices = try world.notices().map { "\($0.key.path) \($0.value?.code.rawValue ?? "-")" }.sorted()
        #expect(notices == ["/users/ana@example.com defect-modified", "/users/bo@example.com defect-assigned"])
        try world.completeAll()
        #expect(try world.mirrors() == world.expectedMirrors && world.notices().count == 2)
    }

    @Test func secondWorkerWithSameResponseConflicts() throws {
        var world = try NotifierWorld.withOwnLogins()
        try world.completeAll()
        world.tracker.act("Submit", on: "S1", by: "bo", at: world.now, owner: "ana")
        try world.startPoll(as: "ana")
        try world.step(.changes, as: "ana")
        let (_, slow) = try world.decide(.changes, as: "ana")
        #expect(try !world.step(.changes, as: "ana"), "the next page is requested")
        #expect(try slow.commit(on: &world.acme.connection).conflicts == [0])
        while try !world.step(.changes, as: "ana") {}
        #expect(try world.notices().count == 1 && world.noticeWriteCount() == 1)
    }

    /// A person stores a login months after the account was removed. What happened before is not notified.
    @Test func firstPollWithAnOwnLoginNotifiesNothing() throws {
        var world = try NotifierWorld.withOwnLogins()
        try NotifierWorld.addTracker(to: &world.acme)
        try world.complete()
        try NotifierWorld.addTracker(to: &world.acme, hasAccount: false)
        try world.acme.connection.run("UPDATE defect.run SET started_at = now() - interval '91 minutes'")
        world.tracker.act("Submit", on: "S1", by: "bo", at: world.now + 3_600, owner: "ana")
        world.now += 60 * 86_400
        try world.startPoll(as: "ana")
        while try !world.step(.changes, as: "ana") {}
        #expect(try world.notices().isEmpty)
        world.tracker.act("Modify", on: "S1", by: "bo", at: world.now)
        world.now += 300
        try world.startPoll(as: "ana")
        while try !world.step(.changes, as: "ana") {}
        #expect(try world.notices().count == 1)
    }
}
