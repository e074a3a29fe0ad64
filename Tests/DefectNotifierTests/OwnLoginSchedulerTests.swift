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

/// The schedule of polls with people's own logins.
@Suite(.ownThreads) struct OwnLoginSchedulerTests {
    private static func polls(_ acme: inout TestEnvironment) throws -> [String] {
        let decoder = JSONDecoder()
        let rows = try acme.connection.run(
            RealmObject.load(kinds: [.defectPoll], realm: try acme.realm(.polls), in: acme.id))
        return try RealmObject.byKey(rows).values.compactMap { try $0.decoded(as: DefectPoll.self, by: decoder) }
            .map { "\($0.scope) \($0.person?.prefix { $0 != "@" } ?? "-") \($0.run)" }.sorted()
    }

    /// Requests a poll as `defect-submitter` does after a command.
    private static let requestPoll: Statement = "UPDATE defect.own_run SET asked_for = true WHERE scope = 'changes'"

    private static func requestPoll(_ realm: Int32) -> Statement {
        "UPDATE defect.own_run SET asked_for = true WHERE scope = 'changes' AND realm_id = \(realm)"
    }

    /// A worker loses a person's poll while their commands keep requesting polls.
    @Test func requestedPollRestartsAfterStaleMax() throws {
        var world = try NotifierWorld.withOwnLogins(people: ["ana": "ana@example.com"])
        var scheduler = try SchedulerTests.scheduler(world.acme)
        try Self.step(&scheduler, 0)
        try world.acme.connection.run("UPDATE defect.own_run SET started_at = now() - interval '11 minutes'")
        try world.acme.connection.run(Self.requestPoll)
        try Self.step(&scheduler, 10)
        #expect(scheduler.own[world.acme.id]?.isLate == true, "the run is in progress")
        #expect(try Self.polls(&world.acme) == ["changes ana 1", "comparison ana 1"])
        try world.acme.connection.run("UPDATE defect.own_run SET started_at = now() - interval '31 minutes'")
        try world.acme.connection.run(Self.requestPoll)
        try Self.step(&scheduler, 1_900)
        #expect(try Self.polls(&world.acme) == ["changes ana 2", "comparison ana 1"])
        #expect(try world.acme.connection.run("SELECT FROM defect.own_run WHERE asked_for").count == 0)
    }

    private static func step(_ scheduler: inout Scheduler, _ seconds: Int64) throws {
        #expect(try scheduler.step(now: SchedulerTests.time(seconds)))
    }

    /// One of three people starts at a time, with an interval of five minutes.
    @Test func runsStartOneAtATime() throws {
        var world = try NotifierWorld.withOwnLogins()
        var scheduler = try SchedulerTests.scheduler(world.acme)
        try Self.step(&scheduler, 0)
        #expect(try Self.polls(&world.acme).count == 2, "one of each scope")
        try Self.step(&scheduler, 0)
        #expect(try Self.polls(&world.acme).count == 2, "within the same second")
        for second in 1..<5 { try Self.step(&scheduler, Int64(second)) }
        let all = ["ana", "bo", "eva"].flatMap { name in ["changes \(name) 1", "comparison \(name) 1"] }.sorted()
        #expect(try Self.polls(&world.acme) == all)
    }

    @Test func runStartsAfterItsIntervalAndTheLastRun() throws {
        var world = try NotifierWorld.withOwnLogins(people: ["ana": "ana@example.com"])
        var scheduler = try SchedulerTests.scheduler(world.acme)
        func make(_ assignment: String) throws -> Statement {
            assignment == "due"
                ? "UPDATE defect.own_run SET started_at = now() - interval '301 seconds'"
                : "UPDATE defect.own_run SET finished_run = run"
        }
        try Self.step(&scheduler, 0)
        #expect(try Self.polls(&world.acme) == ["changes ana 1", "comparison ana 1"])
        try world.acme.connection.run(make("due"))
        try Self.step(&scheduler, 10)
        #expect(try Self.polls(&world.acme) == ["changes ana 1", "comparison ana 1"], "the run is in progress")
        try world.acme.connection.run(make("done"))
        try Self.step(&scheduler, 20)
        #expect(try Self.polls(&world.acme) == ["changes ana 2", "comparison ana 1"])
        // One of ana's commands is done.
        try world.acme.connection.run(make("done"))
        try world.acme.connection.run(Self.requestPoll)
        try Self.step(&scheduler, 30)
        #expect(try Self.polls(&world.acme) == ["changes ana 3", "comparison ana 1"])
        // A run that takes this long counts as lost.
        try world.acme.connection.run(
            "UPDATE defect.own_run SET started_at = now() - interval '20 minutes' WHERE scope = 'changes'")
        try Self.step(&scheduler, 631)
        #expect(try Self.polls(&world.acme) == ["changes ana 4", "comparison ana 1"])
    }

    /// A crash between the write of the poll and the record of its run.
    @Test func pollWrittenBeforeACrashIsNotRewritten() throws {
        var world = try NotifierWorld.withOwnLogins(people: ["ana": "ana@example.com"])
        var scheduler = try SchedulerTests.scheduler(world.acme)
        try Self.step(&scheduler, 0)
        let position = try world.position()
        try world.acme.connection.run("DELETE FROM defect.own_run")
        try Self.step(&scheduler, 2)
        #expect(try world.position() == position)
        #expect(try world.acme.connection.run("SELECT FROM defect.own_run WHERE run = 1").count == 2)
    }

    @Test func onlyGoodLoginsWithoutAnAccountStart() throws {
        var world = try NotifierWorld.withOwnLogins()
        try OwnLoginFixture.store("ana", status: .refused, of: "ana@example.com", in: &world.acme)
        try OwnLoginFixture.store("bo", status: .unchecked, of: "bo@example.com", in: &world.acme)
        try world.acme.connection.run("DELETE FROM backend.defect_account WHERE user_name = 'eva'")
        var scheduler = try SchedulerTests.scheduler(world.acme)
        for second in 0..<3 { try Self.step(&scheduler, Int64(second)) }
        #expect(try Self.polls(&world.acme).isEmpty)
        try OwnLoginFixture.store("ana", of: "ana@example.com", in: &world.acme)
        try NotifierWorld.addTracker(to: &world.acme)
        try Self.step(&scheduler, 4)
        #expect(try Self.polls(&world.acme) == ["changes - 1", "comparison - 1"])
        try NotifierWorld.addTracker(to: &world.acme, hasAccount: false)
        try Self.step(&scheduler, 6)
        #expect(try Self.polls(&world.acme).count == 4)
    }

    @Test func latePollsAreReportedUntilTheyRecover() throws {
        var world = try NotifierWorld.withOwnLogins()
        var scheduler = try SchedulerTests.scheduler(world.acme)
        func isLate(_ second: Int64, after statement: Statement) throws -> Bool? {
            try world.acme.connection.run(statement)
            try Self.step(&scheduler, second)
            return scheduler.own[world.acme.id]?.isLate
        }
        for second in 0..<4 { try Self.step(&scheduler, Int64(second)) }
        let age: Statement = "UPDATE defect.own_run SET started_at = now() - interval '599 seconds'"
        #expect(try isLate(10, after: age) == false)
        // In progress for two intervals, as during an outage of the tracker.
        #expect(try isLate(20, after: "UPDATE defect.own_run SET started_at = now() - interval '601 seconds'") == true)
        #expect(try isLate(30, after: "UPDATE defect.own_run SET finished_run = run") == true)
        // The late runs start one at a time. After the last one, no poll is late.
        for second in 31..<40 { try Self.step(&scheduler, Int64(second)) }
        #expect(scheduler.own[world.acme.id]?.isLate == false)
        // A person without a good login is not late.
        #expect(try isLate(100, after: "UPDATE defect.own_run SET started_at = now() - interval '1 day'") == true)
        for email in world.people.values {
            try OwnLoginFixture.store("x", status: .refused, of: email, in: &world.acme)
        }
        #expect(try isLate(110, after: "SELECT 1") == false)
    }

    /// The maximum work of one step of the scheduler.
    @Test func tenThousandPeopleStartOverTheInterval() throws {
        var world = try NotifierWorld.withOwnLogins(people: [:])
        try world.acme.connection.run([
            """
            INSERT INTO realm.realm (environment_id, id, path)
            SELECT \(world.acme.id), 100000 + i, '/users/p' || i || '@example.com' FROM generate_series(1, 10000) i
            """,
            """
            INSERT INTO backend.defect_account (environment_id, realm_id, user_name, secret)
            SELECT \(world.acme.id), 100000 + i, 'p' || i, '' FROM generate_series(1, 10000) i
            """,
            """
            INSERT INTO store.object (environment_id, realm_id, kind, id, position, source_position, edit_position,
                deleted, fields)
            SELECT \(world.acme.id), 100000 + i, \(Kind.defectAccount), gen_random_uuid(), 1, 1, 1, false,
                '{"status":"good"}' FROM generate_series(1, 10000) i
            """,
        ])
        var scheduler = try SchedulerTests.scheduler(world.acme)
        try Self.step(&scheduler, 0)
        let count = { (acme: inout TestEnvironment, scope: String) in
            try acme.connection.run("SELECT FROM defect.own_run WHERE scope = \(scope)").count
        }
        #expect(try count(&world.acme, "changes") == 67 && count(&world.acme, "comparison") == 6)
        let started = ContinuousClock.now
        for second in 1...5 { try Self.step(&scheduler, Int64(second)) }
        print("a step with 10,000 people: \((ContinuousClock.now - started) / 5)")
        #expect(try count(&world.acme, "changes") == 67 * 6 && count(&world.acme, "comparison") == 36)
    }

    // MARK: The rule

    private static func lastRun(
        _ age: Duration, isDone: Bool = true, isNextRequested: Bool = false
    ) -> OwnLoginScheduleRule.LastRun {
        OwnLoginScheduleRule.LastRun(run: 3, finishedRun: isDone ? 3 : 2, age: age, isNextRequested: isNextRequested)
    }

    @Test func longestWaitingStartsFirst() {
        let due = OwnLoginScheduleRule.due(
            [1, 2, 3, 4, 5, 6, 7, 8, 9],
            [
                1: Self.lastRun(.seconds(299)), 2: Self.lastRun(.seconds(300)), 3: Self.lastRun(.seconds(900)),
                4: Self.lastRun(.seconds(900), isDone: false),
                5: Self.lastRun(.seconds(9), isNextRequested: true),
                6: Self.lastRun(.seconds(1_800), isDone: false, isNextRequested: true),
                7: Self.lastRun(.seconds(1_801), isDone: false),
                9: Self.lastRun(.seconds(1_801), isDone: false, isNextRequested: true),
            ], interval: .seconds(300), staleMax: .seconds(1_800))
        #expect(due.map(\.realm) == [9, 5, 8, 7, 3, 2])
        #expect(due.map(\.run) == [4, 4, 1, 4, 4, 4])
    }

    @Test func startsAreSpreadOverTheInterval() {
        func countMax(_ people: Int, _ elapsed: Duration) -> Int {
            OwnLoginScheduleRule.countMax(people: people, elapsed: elapsed, interval: .seconds(300))
        }
        #expect(countMax(3, .seconds(1)) == 1)
        #expect(countMax(300, .seconds(1)) == 2)
        #expect(countMax(10_000, .seconds(1)) == 67)
        #expect(countMax(10_000, .seconds(600)) == 20_000)
        #expect(countMax(0, .zero) == 1)
    }

    @Test func requestedRunsLeaveCapacityForOthers() {
        func selected(requested: Int, others: Int, countMax: Int) -> [Int32] {
            let due = (0..<requested + others).map { number in
                OwnLoginScheduleRule.DueRun(realm: Int32(number), run: 4, isRequested: number < requested)
            }
            return OwnLoginScheduleRule.selected(due, countMax: countMax).map(\.realm)
        }
        #expect(selected(requested: 9, others: 9, countMax: 4) == [0, 1, 9, 10])
        #expect(selected(requested: 9, others: 9, countMax: 3) == [0, 9, 10])
        #expect(selected(requested: 9, others: 9, countMax: 1) == [9])
        #expect(selected(requested: 9, others: 1, countMax: 4) == [0, 1, 2, 9])
        #expect(selected(requested: 1, others: 9, countMax: 4) == [0, 1, 2, 3])
        #expect(selected(requested: 9, others: 0, countMax: 1) == [0])
        #expect(selected(requested: 0, others: 0, countMax: 1).isEmpty)
    }

    /// A device has hundreds of commands processed, each of which requests a poll of its person.
    @Test func unlimitedRequestsDoNotDelayOthers() throws {
        var world = try NotifierWorld.withOwnLogins()
        var scheduler = try SchedulerTests.scheduler(world.acme)
        for second in 0..<4 { try Self.step(&scheduler, Int64(second)) }
        try world.acme.connection.run(
            "UPDATE defect.own_run SET finished_run = run, started_at = now() - interval '301 seconds'")
        let ana = try world.acme.realm(.user("ana@example.com"))
        for second in 10..<20 {
            try world.acme.connection.run(Self.requestPoll(ana))
            try Self.step(&scheduler, Int64(second))
            try world.acme.connection.run("UPDATE defect.own_run SET finished_run = run")
        }
        let polls = try Self.polls(&world.acme)
        #expect(polls.contains("changes bo 2") && polls.contains("changes eva 2"), "\(polls)")
        #expect(polls.contains("changes ana 9"))
    }

    /// All people start at once, then a downtime, then runs that take too long: no person starves, and afterwards each
    /// has one poll per interval.
    @Test func schedulerStarvesNoPerson() {
        let people = (1...200).map { Int32($0) }
        var startedAt: [Int32: Int] = [:]
        var gaps: [Int: Int] = [:]
        for second in 0..<6_000 where second < 1_000 || second >= 1_600 {
            // For a while only half of the necessary runs can start.
            let isSlow = (2_000..<3_000).contains(second)
            let lastRuns = startedAt.mapValues { started in Self.lastRun(.seconds(second - started)) }
            let due = OwnLoginScheduleRule.due(people, lastRuns, interval: .seconds(300), staleMax: .seconds(1_800))
            let countMax = OwnLoginScheduleRule.countMax(people: 200, elapsed: .seconds(1), interval: .seconds(300))
            for due in due.prefix(isSlow ? (second % 3 == 0 ? 1 : 0) : countMax) {
                if let last = startedAt[due.realm] { gaps[second, default: 0] = max(gaps[second] ?? 0, second - last) }
                startedAt[due.realm] = second
            }
        }
        #expect(startedAt.count == 200)
        #expect(gaps.filter { $0.key >= 4_000 }.values.max() ?? 0 <= 302)
        // One interval, and the time in which all others start.
        #expect((gaps.filter { (2_000..<3_000).contains($0.key) }.values.max() ?? 0) <= 300 + 600)
        #expect(Set(startedAt.values).count > 80, "starts are spread")
    }

    @Test func pollIsLateAfterTwoIntervals() {
        #expect(!OwnLoginScheduleRule.isLate(nil, interval: .seconds(300)))
        #expect(!OwnLoginScheduleRule.isLate(Self.lastRun(.zero, isNextRequested: true), interval: .seconds(300)))
        #expect(
            OwnLoginScheduleRule.isLate(Self.lastRun(.seconds(600), isNextRequested: true), interval: .seconds(300)))
        #expect(!OwnLoginScheduleRule.isLate(Self.lastRun(.seconds(599)), interval: .seconds(300)))
        #expect(OwnLoginScheduleRule.isLate(Self.lastRun(.seconds(600), isDone: false), interval: .seconds(300)))
    }

    // MARK: Start of a poll

    @Test func ownLoginContinuesFromRecentAccountWatermark() {
        let now = NoticeRuleTests.now
        func start(_ own: Int?, _ environment: Int?, _ hasRecentAccountPoll: Bool) -> WatermarkRule.Start {
            WatermarkRule.start(
                own: own, account: hasRecentAccountPoll ? environment : nil, environment: environment, now: now)
        }
        let initial = WatermarkRule.initialWatermark(now: now)
        #expect(start(nil, nil, false) == WatermarkRule.Start(time: nil, watermarkMin: initial))
        #expect(start(nil, initial + 9, false) == WatermarkRule.Start(time: nil, watermarkMin: initial + 9))
        #expect(start(nil, 9, false) == WatermarkRule.Start(time: nil, watermarkMin: initial))
        #expect(start(nil, 9, true) == WatermarkRule.Start(time: 9, watermarkMin: 9))
        #expect(start(5, 9, true) == WatermarkRule.Start(time: 9, watermarkMin: 9))
        #expect(start(5, 9, false) == WatermarkRule.Start(time: 5, watermarkMin: 9), "earlier rows are included")
        #expect(start(12, 9, true) == WatermarkRule.Start(time: 12, watermarkMin: 12))
    }

    @Test func accountContinuesFromOldestOwnWatermark() {
        let now = NoticeRuleTests.now
        func start(_ environment: Int?, _ oldestOwnWatermark: Int?, account: Int? = nil) -> WatermarkRule.Start {
            WatermarkRule.start(
                account: account, oldestOwnWatermark: oldestOwnWatermark, environment: environment, now: now)
        }
        #expect(
            start(nil, nil) == WatermarkRule.Start(time: nil, watermarkMin: WatermarkRule.initialWatermark(now: now)))
        #expect(start(7, nil) == WatermarkRule.Start(time: 7, watermarkMin: 7))
        #expect(start(7, 5) == WatermarkRule.Start(time: 5, watermarkMin: 7))
        #expect(start(7, 9) == WatermarkRule.Start(time: 7, watermarkMin: 7))
        #expect(start(7, nil, account: 7) == WatermarkRule.Start(time: 7, watermarkMin: 7))
        #expect(start(7, 5, account: 4) == WatermarkRule.Start(time: 4, watermarkMin: 7))
        #expect(start(90_000, 5) == WatermarkRule.Start(time: 3_600, watermarkMin: 90_000), "a day at most")
    }
}
