import Essentials
import FoundationEssentials
import Logging
import Model
import ObjectStore
import Postgres
import TestSupport
import Testing

@testable import DefectNotifier
@testable import KeyedWorker

/// The schedule of an environment's polls, on a real PostgreSQL.
@Suite(.ownThreads) struct SchedulerTests {
    static func scheduler(_ acme: borrowing TestEnvironment) throws -> Scheduler {
        try Scheduler(
            conninfo: acme.conninfo, comparisonInterval: .seconds(3_600), staleMax: .seconds(600),
            logger: Logger(label: "scheduler"))
    }

    static func polls(_ acme: inout TestEnvironment) throws -> [String] {
        let decoder = JSONDecoder()
        let realm = try acme.realm(.polls)
        let rows = try acme.connection.run(RealmObject.load(kinds: [.defectPoll], realm: realm, in: acme.id))
        return try RealmObject.byKey(rows).values.compactMap { try $0.decoded(as: DefectPoll.self, by: decoder) }
            .map { "\($0.scope) \($0.run)" }.sorted()
    }

    static func time(_ seconds: Int64) -> Timestamp { Timestamp(millisecondsSinceEpoch: seconds * 1_000) }

    static func makeDue(_ acme: inout TestEnvironment, _ scope: String) throws {
        try acme.connection.run(
            "UPDATE defect.run SET started_at = now() - interval '2 hours' WHERE scope = \(scope)")
    }

    static func finish(_ acme: inout TestEnvironment) throws {
        try acme.connection.run("UPDATE defect.run SET finished_run = run")
    }

    @Test func schedulerWritesNothingWithoutTracker() throws {
        var acme = try TestEnvironment()
        var scheduler = try Self.scheduler(acme)
        #expect(try scheduler.step(now: Self.time(0)))
        #expect(try Self.polls(&acme).isEmpty)
    }

    @Test func runStartsAfterItsIntervalAndTheLastRun() throws {
        var acme = try TestEnvironment()
        try NotifierWorld.addTracker(to: &acme)
        var scheduler = try Self.scheduler(acme)
        #expect(try scheduler.step(now: Self.time(0)))
        #expect(try Self.polls(&acme) == ["changes 1", "comparison 1"])
        _ = try scheduler.step(now: Self.time(1))
        #expect(try Self.polls(&acme) == ["changes 1", "comparison 1"], "the intervals are not over")
        // The interval is over, and the last run is in progress.
        try Self.makeDue(&acme, "changes")
        _ = try scheduler.step(now: Self.time(2))
        #expect(try Self.polls(&acme) == ["changes 1", "comparison 1"])
        try Self.finish(&acme)
        _ = try scheduler.step(now: Self.time(3))
        #expect(try Self.polls(&acme) == ["changes 2", "comparison 1"])
        // A run that takes this long counts as lost.
        try Self.makeDue(&acme, "changes")
        _ = try scheduler.step(now: Self.time(3 + 601))
        #expect(try Self.polls(&acme) == ["changes 3", "comparison 1"])
        try Self.finish(&acme)
        try Self.makeDue(&acme, "comparison")
        _ = try scheduler.step(now: Self.time(700))
        #expect(try Self.polls(&acme) == ["changes 3", "comparison 2"])
    }

    /// A crash between the write of the poll and the record of its run.
    @Test func pollWrittenBeforeACrashIsNotRewritten() throws {
        var acme = try TestEnvironment()
        try NotifierWorld.addTracker(to: &acme)
        var scheduler = try Self.scheduler(acme)
        _ = try scheduler.step(now: Self.time(0))
        let position = try acme.connection.run("SELECT position FROM realm.environment")[0].decode(Int64.self)
        try acme.connection.run("DELETE FROM defect.run")
        _ = try scheduler.step(now: Self.time(1))
        #expect(
            try acme.connection.run("SELECT position FROM realm.environment")[0].decode(Int64.self) == position)
        #expect(try acme.connection.run("SELECT FROM defect.run WHERE run = 1").count == 2)
    }

    /// A worker may finish before the scheduler records the start of the run.
    @Test func requestedRunStartsEarlyOnce() throws {
        var acme = try TestEnvironment()
        try NotifierWorld.addTracker(to: &acme)
        var scheduler = try Self.scheduler(acme)
        #expect(try scheduler.step(now: Self.time(0)))
        // The second request is one of the previous release.
        for (run, request) in [(2, "asked_for = true"), (3, "started_at = '-infinity'")] as [(Int, Statement)] {
            try Self.finish(&acme)
            try acme.connection.run("UPDATE defect.run SET \(request) WHERE scope = 'changes'")
            #expect(try scheduler.step(now: Self.time(1)))
            #expect(try Self.polls(&acme).contains("changes \(run)"))
            try Self.finish(&acme)
            #expect(try scheduler.step(now: Self.time(2)))
            #expect(try Self.polls(&acme).contains("changes \(run)"))
        }
    }

    @Test func runFinishedBeforeItsRecordStaysFinished() throws {
        var world = try NotifierWorld()
        var scheduler = try Self.scheduler(world.acme)
        try world.complete()
        _ = try scheduler.step(now: Self.time(0))
        #expect(try Self.polls(&world.acme) == ["changes 1", "comparison 1"])
        let finished = try world.acme.connection.run(
            "SELECT finished_run FROM defect.run WHERE scope = 'changes' AND run = 1")[0].decode(Int64.self)
        #expect(finished == 1)
    }

    @Test func onlyOneSchedulerIsLeader() throws {
        let acme = try TestEnvironment()
        var first = try Self.scheduler(acme)
        var second = try Self.scheduler(acme)
        let isFirst = try first.step(now: Self.time(0))
        let isSecondToo = try second.step(now: Self.time(0))
        #expect(isFirst && !isSecondToo)
    }
}
