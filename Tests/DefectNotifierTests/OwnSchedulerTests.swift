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

/// When the polls of people who are told by their own logins are written.
@Suite(.ownThreads) struct OwnSchedulerTests {
    private static func polls(_ acme: inout TestEnvironment) throws -> [String] {
        let decoder = JSONDecoder()
        let rows = try acme.connection.run(
            RealmObject.load(kinds: [.defectPoll], realm: try acme.realm(.polls), in: acme.id))
        return try RealmObject.byKey(rows).values.compactMap { try $0.decoded(as: DefectPoll.self, by: decoder) }
            .map { "\($0.scope) \($0.person?.prefix { $0 != "@" } ?? "-") \($0.run)" }.sorted()
    }

    /// As `defect-submitter` does when a command is done.
    private static let ask: Statement = "UPDATE defect.own_run SET asked_for = true WHERE scope = 'changes'"

    private static func ask(_ realm: Int32) -> Statement {
        "UPDATE defect.own_run SET asked_for = true WHERE scope = 'changes' AND realm_id = \(realm)"
    }

    /// A worker loses a person's poll, with commands of theirs being done all the time.
    @Test func aRoundThatIsAskedForAgainAndAgainDoesNotStayWhereItIs() throws {
        var world = try NotifierWorld.withOwnLogins(people: ["ana": "ana@example.com"])
        var scheduler = try SchedulerTests.scheduler(world.acme)
        try Self.step(&scheduler, 0)
        try world.acme.connection.run("UPDATE defect.own_run SET started_at = now() - interval '11 minutes'")
        try world.acme.connection.run(Self.ask)
        try Self.step(&scheduler, 10)
        #expect(scheduler.own[world.acme.id]?.isLate == true, "its end is waited for")
        #expect(try Self.polls(&world.acme) == ["changes ana 1", "comparison ana 1"])
        try world.acme.connection.run("UPDATE defect.own_run SET started_at = now() - interval '31 minutes'")
        try world.acme.connection.run(Self.ask)
        try Self.step(&scheduler, 1_900)
        #expect(try Self.polls(&world.acme) == ["changes ana 2", "comparison ana 1"])
        #expect(try world.acme.connection.run("SELECT FROM defect.own_run WHERE asked_for").count == 0)
    }

    private static func step(_ scheduler: inout Scheduler, _ seconds: Int64) throws {
        #expect(try scheduler.step(now: SchedulerTests.time(seconds)))
    }

    /// One at a time of three, whose interval is five minutes: nobody waits long, and not all come at once.
    @Test func peopleBeginOneAfterTheOther() throws {
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

    @Test func aRunBeginsWhenItsIntervalIsOverAndTheOneBeforeIsDone() throws {
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
        #expect(try Self.polls(&world.acme) == ["changes ana 1", "comparison ana 1"], "it is under way")
        try world.acme.connection.run(make("done"))
        try Self.step(&scheduler, 20)
        #expect(try Self.polls(&world.acme) == ["changes ana 2", "comparison ana 1"])
        // A command of hers is done.
        try world.acme.connection.run(make("done"))
        try world.acme.connection.run(Self.ask)
        try Self.step(&scheduler, 30)
        #expect(try Self.polls(&world.acme) == ["changes ana 3", "comparison ana 1"])
        // Something must be wrong with a run that takes so long.
        try world.acme.connection.run(
            "UPDATE defect.own_run SET started_at = now() - interval '20 minutes' WHERE scope = 'changes'")
        try Self.step(&scheduler, 631)
        #expect(try Self.polls(&world.acme) == ["changes ana 4", "comparison ana 1"])
    }

    /// A crash between the poll and what says that its run is begun.
    @Test func aPollThatIsWrittenIsNotWrittenAgain() throws {
        var world = try NotifierWorld.withOwnLogins(people: ["ana": "ana@example.com"])
        var scheduler = try SchedulerTests.scheduler(world.acme)
        try Self.step(&scheduler, 0)
        let position = try world.position()
        try world.acme.connection.run("DELETE FROM defect.own_run")
        try Self.step(&scheduler, 2)
        #expect(try world.position() == position)
        #expect(try world.acme.connection.run("SELECT FROM defect.own_run WHERE run = 1").count == 2)
    }

    @Test func nobodyBeginsWhoseLoginIsNotGoodAndNobodyWhereThereIsAnAccount() throws {
        var world = try NotifierWorld.withOwnLogins()
        try OwnLogins.store("ana", status: .refused, of: "ana@example.com", in: &world.acme)
        try OwnLogins.store("bo", status: .unchecked, of: "bo@example.com", in: &world.acme)
        try world.acme.connection.run("DELETE FROM backend.defect_account WHERE user_name = 'eva'")
        var scheduler = try SchedulerTests.scheduler(world.acme)
        for second in 0..<3 { try Self.step(&scheduler, Int64(second)) }
        #expect(try Self.polls(&world.acme).isEmpty)
        try OwnLogins.store("ana", of: "ana@example.com", in: &world.acme)
        try NotifierWorld.addTracker(to: &world.acme)
        try Self.step(&scheduler, 4)
        #expect(try Self.polls(&world.acme) == ["changes - 1", "comparison - 1"])
        try NotifierWorld.addTracker(to: &world.acme, hasAccount: false)
        try Self.step(&scheduler, 6)
        #expect(try Self.polls(&world.acme).count == 4)
    }

    @Test func itIsSaidWhenPeopleAreToldLateAndWhenTheyAreNotAnyMore() throws {
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
        // Under way for so long, as when the tracker is away.
        #expect(try isLate(20, after: "UPDATE defect.own_run SET started_at = now() - interval '601 seconds'") == true)
        #expect(try isLate(30, after: "UPDATE defect.own_run SET finished_run = run") == true)
        // Those begin one after the other; with the last one nobody is late any more.
        for second in 31..<40 { try Self.step(&scheduler, Int64(second)) }
        #expect(scheduler.own[world.acme.id]?.isLate == false)
        // Somebody who has no good login waits for nothing.
        #expect(try isLate(100, after: "UPDATE defect.own_run SET started_at = now() - interval '1 day'") == true)
        for email in world.people.values {
            try OwnLogins.store("x", status: .refused, of: email, in: &world.acme)
        }
        #expect(try isLate(110, after: "SELECT 1") == false)
    }

    /// The most that a step of the scheduler does, whoever waits.
    @Test func tenThousandPeopleBeginOverTheInterval() throws {
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

    private static func begun(
        _ age: Duration, isDone: Bool = true, isNextAskedFor: Bool = false
    ) -> OwnScheduleRule.Begun {
        OwnScheduleRule.Begun(run: 3, finishedRun: isDone ? 3 : 2, age: age, isNextAskedFor: isNextAskedFor)
    }

    @Test func whoHasWaitedLongestComesFirst() {
        let due = OwnScheduleRule.due(
            [1, 2, 3, 4, 5, 6, 7, 8, 9],
            [
                1: Self.begun(.seconds(299)), 2: Self.begun(.seconds(300)), 3: Self.begun(.seconds(900)),
                4: Self.begun(.seconds(900), isDone: false),
                5: Self.begun(.seconds(9), isNextAskedFor: true),
                6: Self.begun(.seconds(1_800), isDone: false, isNextAskedFor: true),
                7: Self.begun(.seconds(1_801), isDone: false),
                9: Self.begun(.seconds(1_801), isDone: false, isNextAskedFor: true),
            ], interval: .seconds(300), staleMax: .seconds(1_800))
        #expect(due.map(\.realm) == [9, 5, 8, 7, 3, 2])
        #expect(due.map(\.run) == [4, 4, 1, 4, 4, 4])
    }

    @Test func peopleAreSpreadOverTheInterval() {
        func countMax(_ people: Int, _ elapsed: Duration) -> Int {
            OwnScheduleRule.countMax(people: people, elapsed: elapsed, interval: .seconds(300))
        }
        #expect(countMax(3, .seconds(1)) == 1)
        #expect(countMax(300, .seconds(1)) == 2)
        #expect(countMax(10_000, .seconds(1)) == 67)
        #expect(countMax(10_000, .seconds(600)) == 20_000)
        #expect(countMax(0, .zero) == 1)
    }

    @Test func roundsThatAreAskedForLeavePlacesForOthers() {
        func chosen(asked: Int, others: Int, countMax: Int) -> [Int32] {
            let due = (0..<asked + others).map { number in
                OwnScheduleRule.Due(realm: Int32(number), run: 4, isAskedFor: number < asked)
            }
            return OwnScheduleRule.chosen(due, countMax: countMax).map(\.realm)
        }
        #expect(chosen(asked: 9, others: 9, countMax: 4) == [0, 1, 9, 10])
        #expect(chosen(asked: 9, others: 9, countMax: 3) == [0, 9, 10])
        #expect(chosen(asked: 9, others: 9, countMax: 1) == [9])
        #expect(chosen(asked: 9, others: 1, countMax: 4) == [0, 1, 2, 9])
        #expect(chosen(asked: 1, others: 9, countMax: 4) == [0, 1, 2, 3])
        #expect(chosen(asked: 9, others: 0, countMax: 1) == [0])
        #expect(chosen(asked: 0, others: 0, countMax: 1).isEmpty)
    }

    /// A device has hundreds of commands done, and after each a round of its person is asked for.
    @Test func roundsThatAreAskedForWithoutEndHoldUpNobody() throws {
        var world = try NotifierWorld.withOwnLogins()
        var scheduler = try SchedulerTests.scheduler(world.acme)
        for second in 0..<4 { try Self.step(&scheduler, Int64(second)) }
        try world.acme.connection.run(
            "UPDATE defect.own_run SET finished_run = run, started_at = now() - interval '301 seconds'")
        let ana = try world.acme.realm(.user("ana@example.com"))
        for second in 10..<20 {
            try world.acme.connection.run(Self.ask(ana))
            try Self.step(&scheduler, Int64(second))
            try world.acme.connection.run("UPDATE defect.own_run SET finished_run = run")
        }
        let polls = try Self.polls(&world.acme)
        #expect(polls.contains("changes bo 2") && polls.contains("changes eva 2"), "\(polls)")
        #expect(polls.contains("changes ana 9"))
    }

    /// Everybody at once, a standstill, and rounds that each take longer than they should: nobody is passed over, and
    /// when it is over each has a round in each interval.
    @Test func nobodyStarves() {
        let people = (1...200).map { Int32($0) }
        var startedAt: [Int32: Int] = [:]
        var gaps: [Int: Int] = [:]
        for second in 0..<6_000 where second < 1_000 || second >= 1_600 {
            // For a while only half as many can be begun as must.
            let isSlow = (2_000..<3_000).contains(second)
            let begun = startedAt.mapValues { started in Self.begun(.seconds(second - started)) }
            let due = OwnScheduleRule.due(people, begun, interval: .seconds(300), staleMax: .seconds(1_800))
            let countMax = OwnScheduleRule.countMax(people: 200, elapsed: .seconds(1), interval: .seconds(300))
            for due in due.prefix(isSlow ? (second % 3 == 0 ? 1 : 0) : countMax) {
                if let last = startedAt[due.realm] { gaps[second, default: 0] = max(gaps[second] ?? 0, second - last) }
                startedAt[due.realm] = second
            }
        }
        #expect(startedAt.count == 200)
        #expect(gaps.filter { $0.key >= 4_000 }.values.max() ?? 0 <= 302)
        // An interval, and until all others had their turn.
        #expect((gaps.filter { (2_000..<3_000).contains($0.key) }.values.max() ?? 0) <= 300 + 600)
        #expect(Set(startedAt.values).count > 80, "they are spread")
    }

    @Test func whoShouldHaveBegunAnIntervalAgoIsLate() {
        #expect(!OwnScheduleRule.isLate(nil, interval: .seconds(300)))
        #expect(!OwnScheduleRule.isLate(Self.begun(.zero, isNextAskedFor: true), interval: .seconds(300)))
        #expect(OwnScheduleRule.isLate(Self.begun(.seconds(600), isNextAskedFor: true), interval: .seconds(300)))
        #expect(!OwnScheduleRule.isLate(Self.begun(.seconds(599)), interval: .seconds(300)))
        #expect(OwnScheduleRule.isLate(Self.begun(.seconds(600), isDone: false), interval: .seconds(300)))
    }

    // MARK: Where a reading begins

    @Test func aPersonGoesOnWhereTheAccountHasBeenUntilAShortWhileAgo() {
        let now = NoticeRuleTests.now
        func start(_ own: Int?, _ everybodys: Int?, _ comesAfterAccount: Bool) -> WatermarkRule.Start {
            WatermarkRule.start(
                own: own, account: comesAfterAccount ? everybodys : nil, everybodys: everybodys, now: now)
        }
        let beginning = WatermarkRule.beginning(now: now)
        #expect(start(nil, nil, false) == WatermarkRule.Start(time: nil, reached: beginning))
        #expect(start(nil, beginning + 9, false) == WatermarkRule.Start(time: nil, reached: beginning + 9))
        #expect(start(nil, 9, false) == WatermarkRule.Start(time: nil, reached: beginning))
        #expect(start(nil, 9, true) == WatermarkRule.Start(time: 9, reached: 9))
        #expect(start(5, 9, true) == WatermarkRule.Start(time: 9, reached: 9))
        #expect(start(5, 9, false) == WatermarkRule.Start(time: 5, reached: 9), "nothing before is missed")
        #expect(start(12, 9, true) == WatermarkRule.Start(time: 12, reached: 12))
    }

    @Test func theAccountGoesOnWhereTheLastPersonWas() {
        let now = NoticeRuleTests.now
        func start(_ everybodys: Int?, _ ownOldest: Int?, account: Int? = nil) -> WatermarkRule.Start {
            WatermarkRule.start(account: account, ownOldest: ownOldest, everybodys: everybodys, now: now)
        }
        #expect(start(nil, nil) == WatermarkRule.Start(time: nil, reached: WatermarkRule.beginning(now: now)))
        #expect(start(7, nil) == WatermarkRule.Start(time: 7, reached: 7))
        #expect(start(7, 5) == WatermarkRule.Start(time: 5, reached: 7))
        #expect(start(7, 9) == WatermarkRule.Start(time: 7, reached: 7))
        #expect(start(7, nil, account: 7) == WatermarkRule.Start(time: 7, reached: 7))
        #expect(start(7, 5, account: 4) == WatermarkRule.Start(time: 4, reached: 7))
        #expect(start(90_000, 5) == WatermarkRule.Start(time: 3_600, reached: 90_000), "a day at most")
    }
}
