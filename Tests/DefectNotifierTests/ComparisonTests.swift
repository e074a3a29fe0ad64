import BackendConnections
import FoundationEssentials
import Model
import Postgres
import TestSupport
import Testing

@testable import DefectNotifier

/// People's mirrors of defects, on a real PostgreSQL.
@Suite(.ownThreads) struct ComparisonTests {
    /// - Parameter count: Defects, each of which has an owner and a submitter.
    static func world(_ count: Int) throws -> NotifierWorld {
        var world = try NotifierWorld()
        let logins = ["ana", "bo", "eva", "unlisted"]
        for number in 0..<count {
            world.tracker.add(
                TrackedDefect(
                    record: "S\(number)", headline: "Defect \(number)", state: "Opened", owner: logins[number % 4],
                    submitter: logins[number / 4 % 4]))
        }
        return world
    }

    @Test func comparisonWritesDifferencesOnce() throws {
        var world = try Self.world(1_200)
        try world.complete(.comparison)
        #expect(try world.mirrors() == world.expectedMirrors)
        let position = try world.position()
        try world.complete(.comparison)
        #expect(try world.position() == position + 1, "its poll")
        world.tracker.delete("S1")
        world.tracker.delete("S700")
        world.tracker.add(TrackedDefect(record: "S2", headline: "Other", owner: "ana", submitter: "bo"))
        try world.complete(.comparison)
        #expect(try world.mirrors() == world.expectedMirrors)
    }

    @Test func historyPollUpdatesMirrorsBetweenComparisons() throws {
        var world = try Self.world(20)
        try world.complete(.comparison)
        try world.complete()
        world.now += 300
        world.tracker.act("Assign", on: "S1", by: "eva", at: world.now, owner: "ana", headline: "Moved")
        world.tracker.act("Submit", on: "S99", by: "bo", at: world.now, owner: "eva")
        world.tracker.act("Resolve", on: "S4", by: "eva", at: world.now, owner: "", state: "Resolved")
        try world.complete()
        #expect(try world.mirrors() == world.expectedMirrors)
    }

    /// A page that a comparison has read is older than what a history poll has written meanwhile.
    @Test func comparisonKeepsNewerChangesOfAHistoryPoll() throws {
        var world = try Self.world(8)
        try world.complete(.comparison)
        try world.complete()
        world.tracker.pageRowsMax = 3
        try world.startPoll(.comparison)
        try world.step(.comparison)
        world.now += 300
        for number in 0..<8 {
            world.tracker.act("Assign", on: "S\(number)", by: "eva", at: world.now, owner: "ana", headline: "Newer")
        }
        world.tracker.act("Submit", on: "S9", by: "ana", at: world.now, owner: "bo")
        try world.complete()
        while try !world.step(.comparison) {}
        #expect(try world.mirrors() == world.expectedMirrors)
    }

    @Test func comparisonRemovesMirrorsOfRemovedLogin() throws {
        var world = try Self.world(40)
        try world.complete(.comparison)
        try world.acme.connection.run("DELETE FROM backend.defect_login WHERE login = 'bo'")
        try world.complete(.comparison)
        var expected = world.expectedMirrors
        expected["/users/bo@example.com"] = nil
        #expect(try world.mirrors() == expected)
        #expect(
            try world.acme.connection.run("SELECT count(*) FROM defect.mirror")[0].decode(Int64.self)
                == Int64(expected.values.map(\.count).reduce(0, +)))
    }

    /// As manual SQL may leave them: a mirror without its row, a row without its mirror, and a mirror of no defect.
    @Test func comparisonRepairsMissingAndExtraRows() throws {
        var world = try Self.world(8)
        try world.complete(.comparison)
        try world.acme.connection.run([
            "DELETE FROM defect.mirror WHERE ctid = (SELECT min(ctid) FROM defect.mirror)",
            """
            DELETE FROM store.object o USING (SELECT * FROM defect.mirror ORDER BY ctid DESC LIMIT 1) m
            WHERE o.realm_id = m.realm_id AND o.id = m.defect_id
            """,
        ])
        try world.acme.put([(UUID(), #"{"record": "S99"}"#)], .defect, into: .user("ana@example.com"))
        try world.complete(.comparison)
        #expect(try world.mirrors() == world.expectedMirrors)
        #expect(
            try world.acme.connection.run("SELECT count(*) FROM defect.mirror")[0].decode(Int64.self)
                == Int64(world.expectedMirrors.values.map(\.count).reduce(0, +)))
    }

    /// An unreadable row leaves open whether its defect exists.
    @Test func comparisonWithUnreadableRowRemovesNothing() throws {
        var world = try Self.world(8)
        try world.complete(.comparison)
        let mirrors = try world.mirrors()
        world.tracker.delete("S1")
        world.tracker.unreadableRows = [["Headline": "without an id"]]
        try world.complete(.comparison)
        #expect(try world.mirrors() == mirrors)
        world.tracker.unreadableRows = []
        try world.complete(.comparison)
        #expect(try world.mirrors() == world.expectedMirrors && world.mirrors() != mirrors)
    }

    @Test func comparisonRemovesMirrorsInSeveralTransactions() throws {
        var world = try Self.world(3_000)
        try world.complete(.comparison)
        for number in 0..<2_900 { world.tracker.delete("S\(number)") }
        try world.complete(.comparison)
        #expect(try world.mirrors() == world.expectedMirrors)
    }

    /// A mirror that another writer overwrote is restored.
    @Test func undecodableMirrorIsRewritten() throws {
        var world = try Self.world(8)
        try world.complete(.comparison)
        try world.acme.put([(world.ids.defect("S0"), "{}")], .defect, into: try .user("ana@example.com"))
        try world.complete(.comparison)
        #expect(try world.mirrors() == world.expectedMirrors)
    }
}
