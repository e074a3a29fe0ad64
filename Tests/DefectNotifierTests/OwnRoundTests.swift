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

/// Rounds with people's own logins, on a real PostgreSQL.
@Suite(.ownThreads) struct OwnRoundTests {
    @Test func eachIsToldOfWhatOthersDoWithTheirDefects() throws {
        var world = try NotifierWorld.withOwnLogins()
        world.tracker.act("Submit", on: "S1", by: "bo", at: world.now, owner: "ana")
        try world.completeAll()
        #expect(try world.notices().isEmpty, "what was there before is no news")
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
        #expect(try world.position() == position + 9, "a poll of each person and round, and nothing else")
    }

    /// Two queries a round, of which each is made, run and removed: what is assigned, and the rest.
    @Test func aRoundTakesTwoQueries() throws {
        var world = try NotifierWorld.withOwnLogins()
        try world.complete(as: "ana")
        try world.complete(.comparison, as: "ana")
        #expect(world.tracker.queryCount == 4 && world.tracker.pageCount == 4)
    }

    @Test func aDefectThatIsGivenToSomebodyElseLeavesWithTheNextRound() throws {
        var world = try NotifierWorld.withOwnLogins()
        world.tracker.add(TrackedDefect(record: "S1", headline: "One", owner: "ana", submitter: "stranger"))
        world.tracker.add(TrackedDefect(record: "S2", headline: "Two", owner: "eva", submitter: "ana"))
        try world.completeAll(.comparison)
        try world.completeAll()
        world.now += 300
        world.tracker.act("Assign", on: "S1", by: "stranger", at: world.now, owner: "bo")
        world.tracker.act("Modify", on: "S2", by: "stranger", at: world.now, headline: "Other")
        try world.complete(as: "ana")
        let mirrors = try world.mirrors()
        #expect(mirrors["/users/ana@example.com"] == ["S2 Other - false true"])
        #expect(mirrors["/users/bo@example.com"] == nil && mirrors["/users/eva@example.com"]?.count == 1)
        try world.complete(as: "bo")
        try world.complete(as: "eva")
        #expect(try world.mirrors() == world.expectedMirrors)
        try world.expectNotices()
    }

    @Test func whatAPersonDoesNotSeeIsNotTold() throws {
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

    @Test func aComparisonConcernsItsPersonAlone() throws {
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

    /// What happened meanwhile is told when the person has stored another one; the others go on.
    @Test func aRefusedLoginIsSaidAndNotTriedUntilThereIsAnother() throws {
        var world = try NotifierWorld.withOwnLogins()
        try world.completeAll()
        world.tracker.refusedLogins = ["ana"]
        world.tracker.act("Submit", on: "S1", by: "eva", at: world.now, owner: "ana")
        world.tracker.act("Submit", on: "S2", by: "eva", at: world.now, owner: "bo")
        world.now += 300
        try world.begin(as: "ana")
        while try !world.step(.changes, as: "ana") {}
        try world.complete(as: "bo")
        let account = try OwnLogins.account(of: "ana@example.com", in: &world.acme)
        #expect(account?.status == .refused && account?.reason == "no ana" && account?.user == "ana")
        #expect(try world.notices().count == 1)
        // A poll that is there all the same asks nothing, and says nothing again.
        let (position, queryCount) = (try world.position(), world.tracker.queryCount)
        world.tracker.refusedLogins = []
        try world.begin(as: "ana")
        #expect(try world.step(.changes, as: "ana"))
        #expect(try world.position() == position + 1 && world.tracker.queryCount == queryCount)
        try OwnLogins.store("ana", password: "new", of: "ana@example.com", in: &world.acme)
        world.now += 7_200
        try world.completeAll()
        try world.expectNotices()
        #expect(try world.notices().count == 2)
    }

    /// What an earlier login has read is not taken for what the new one sees.
    @Test func aLoginThatIsReplacedMeanwhileReadsAnew() throws {
        var world = try NotifierWorld.withOwnLogins()
        try world.completeAll()
        world.tracker.act("Submit", on: "S1", by: "eva", at: world.now, owner: "ana")
        world.now += 300
        world.tracker.refusedLogins = ["ana"]
        try world.begin(as: "ana")
        try world.step(.changes, as: "ana")
        world.tracker.refusedLogins = []
        try OwnLogins.store("ana", password: "new", of: "ana@example.com", in: &world.acme)
        while try !world.step(.changes, as: "ana") {}
        #expect(try OwnLogins.account(of: "ana@example.com", in: &world.acme)?.status == .good)
        #expect(try world.notices().count == 1)
    }

    @Test func whoHasNoLoginIsNotTold() throws {
        var world = try NotifierWorld.withOwnLogins()
        try world.completeAll()
        try world.acme.connection.run("DELETE FROM backend.defect_account")
        world.tracker.act("Submit", on: "S1", by: "eva", at: world.now, owner: "ana")
        let queryCount = world.tracker.queryCount
        try world.begin(as: "ana")
        #expect(try world.step(.changes, as: "ana"))
        // Nor is anybody by the account that there is not.
        try world.begin()
        #expect(try world.step(.changes))
        #expect(try world.notices().isEmpty && world.tracker.queryCount == queryCount)
    }

    @Test func anAccountThatDoesNotDecodeHoldsUpNobody() throws {
        var world = try NotifierWorld.withOwnLogins()
        try world.completeAll()
        try world.acme.connection.run(
            """
            UPDATE store.object SET fields = '{}' WHERE kind = \(Kind.defectAccount)
                AND realm_id = (SELECT id FROM realm.realm WHERE path = '/users/ana@example.com')
            """)
        for login in ["ana", "bo"] {
            world.tracker.act("Submit", on: "S-\(login)", by: "eva", at: world.now, owner: login)
            try world.begin(as: login)
            try world.step(.changes, as: login)
        }
        try world.stepTogether(as: ["ana", "bo"])
        while try !world.step(.changes, as: "bo") {}
        #expect(try world.notices().keys.map(\.path) == ["/users/bo@example.com"])
    }

    @Test func aLoginThatDoesNotOpenWaits() throws {
        var world = try NotifierWorld.withOwnLogins()
        try world.acme.connection.run("UPDATE backend.defect_account SET secret = ''")
        try world.begin(as: "ana")
        let (disposition, _) = try world.decide(.changes, as: "ana")
        guard case .park(_, _, .planned) = disposition else {
            Issue.record("\(disposition)")
            return
        }
    }

    /// A defect changes hands between two people's readings, and both are decided together: what happened before is
    /// told to one of them.
    @Test func roundsThatAreDecidedTogetherTellARowOnce() throws {
        var world = try NotifierWorld.withOwnLogins()
        try world.completeAll()
        world.tracker.act("Modify", on: "S1", by: "eva", at: world.now, owner: "ana")
        world.now += 300
        try world.begin(as: "ana")
        try world.step(.changes, as: "ana")
        world.tracker.act("Assign", on: "S1", by: "eva", at: world.now, owner: "bo")
        try world.begin(as: "bo")
        try world.step(.changes, as: "bo")
        for _ in 0..<3 { try world.stepTogether(as: ["ana", "bo"]) }
        let told = try world.notices().map { "\($0.key.path) \($0.value?.code.rawValue ?? "-")" }.sorted()
        #expect(told == ["/users/ana@example.com defect-modified", "/users/bo@example.com defect-assigned"])
        try world.completeAll()
        #expect(try world.mirrors() == world.expectedMirrors && world.notices().count == 2)
    }

    @Test func twoWorkersWithOneAnswerWriteItOnce() throws {
        var world = try NotifierWorld.withOwnLogins()
        try world.completeAll()
        world.tracker.act("Submit", on: "S1", by: "bo", at: world.now, owner: "ana")
        try world.begin(as: "ana")
        try world.step(.changes, as: "ana")
        let (_, slow) = try world.decide(.changes, as: "ana")
        #expect(try !world.step(.changes, as: "ana"), "the rest is asked for")
        #expect(try slow.commit(on: &world.acme.connection).missed == [0])
        while try !world.step(.changes, as: "ana") {}
        #expect(try world.notices().count == 1 && world.noticeWriteCount() == 1)
    }

    /// Months after the account went, somebody stores a login: what happened until then is no news.
    @Test func whoComesLaterIsNotToldOfWhatWasBefore() throws {
        var world = try NotifierWorld.withOwnLogins()
        try NotifierWorld.addTracker(to: &world.acme)
        try world.complete()
        try NotifierWorld.addTracker(to: &world.acme, hasAccount: false)
        try world.acme.connection.run("UPDATE defect.run SET started_at = now() - interval '91 minutes'")
        world.tracker.act("Submit", on: "S1", by: "bo", at: world.now + 3_600, owner: "ana")
        world.now += 60 * 86_400
        try world.begin(as: "ana")
        while try !world.step(.changes, as: "ana") {}
        #expect(try world.notices().isEmpty)
        world.tracker.act("Modify", on: "S1", by: "bo", at: world.now)
        world.now += 300
        try world.begin(as: "ana")
        while try !world.step(.changes, as: "ana") {}
        #expect(try world.notices().count == 1)
    }
}
