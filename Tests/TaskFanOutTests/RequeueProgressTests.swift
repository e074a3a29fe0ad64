import Essentials
import FoundationEssentials
import KeyedWorker
import Model
import ObjectStore
import Postgres
import TestSupport
import Testing

@testable import TaskFanOut

/// Many tasks and memberships of a deleted object become due a few at a time.
@Suite(.ownThreads) struct RequeueProgressTests {
    private static let taskCount = 2 * RequeueProgress.countMax + 30

    /// A world with a team of many tasks and three members, which was deleted. Its event is not processed yet.
    private struct Deletion: ~Copyable {
        var world: TaskWorld
        let team: UUID
        let tasks: Set<UUID>
        var handler = TaskHandler()

        init() throws {
            var world = try TaskWorld()
            let people = try (0..<3).map { try world.person("p\($0)") }
            let team = try world.acme.makeTeam(members: people)
            let ids = (0..<RequeueProgressTests.taskCount).map { _ in UUID() }
            try world.acme.put(
                ids.map { ($0, "{\"title\":\"Pipe\",\"team\":\"\(team.text)\"}") }, .fieldTask, into: .manager)
            try world.settle()
            try world.acme.delete(.team, team, in: .common)
            (self.team, tasks) = (team, Set(ids))
            self.world = world
        }

        /// Decides the team's event once.
        ///
        /// - Returns: Whether its work is complete.
        mutating func step() throws -> Bool {
            let subject = EventSubject(realm: .common, kind: .team, id: team)
            let item = WorkItem<Never>(
                environment: world.acme.id, subject: subject, origin: .event, attemptCount: 0)
            var batch = WriteBatch(environment: world.acme.id)
            let next = try handler.decide([item], in: world.acme.id, batch: &batch, on: &world.acme.connection)
            #expect(batch.defersDueKeys)
            #expect(batch.isEmpty, "a commit would lock the counter")
            if case .finished = next[0] { return true }
            guard case .reprocess = next[0] else { throw UnexpectedDisposition() }
            return false
        }

        struct UnexpectedDisposition: Error {}

        mutating func dueCount() throws -> Int {
            try world.acme.connection.run(
                "SELECT FROM pipeline.parked WHERE environment_id = \(world.acme.id.rawValue) AND next_at <= now()"
            ).count
        }

        /// Checks the state after all work is complete.
        mutating func expectNoReferences() throws {
            try world.settle()
            for task in tasks { #expect(try world.master(task, hasCopyIn: nil).team == nil) }
            #expect(try world.memberships().isEmpty)
            #expect(try world.settleRepublished() == 0)
        }
    }

    /// Other writes hold the counter meanwhile.
    @Test func eachStepHasALimitAndDoesNotWaitForTheCounter() throws {
        var deletion = try Deletion()
        var other = try Connection(deletion.world.acme.conninfo, limits: .openTransaction)
        let environment = deletion.world.acme.id.rawValue
        try other.transaction { transaction in
            try transaction.run("SELECT FROM realm.environment WHERE id = \(environment) FOR UPDATE")
            for count in [RequeueProgress.countMax, 2 * RequeueProgress.countMax] {
                #expect(try !deletion.step())
                #expect(try deletion.dueCount() == count)
            }
            #expect(try deletion.step())
            #expect(try deletion.dueCount() == Self.taskCount + 3)
        }
        try deletion.expectNoReferences()
    }

    /// The worker ends after the first step; another one processes the event.
    @Test func newWorkerRereadsKeys() throws {
        var deletion = try Deletion()
        #expect(try !deletion.step())
        deletion.handler = TaskHandler()
        for _ in 0..<2 { #expect(try !deletion.step()) }
        #expect(try deletion.step())
        #expect(try deletion.dueCount() == Self.taskCount + 3)
        try deletion.expectNoReferences()
    }

    /// The team is restored and deleted again between two steps. A task of it was written in between.
    @Test func laterDeletionRereadsKeys() throws {
        var deletion = try Deletion()
        #expect(try !deletion.step())
        let (team, task) = (deletion.team, UUID())
        try deletion.world.put(.team, team, #"{"name":"red"}"#, in: .common)
        try deletion.world.put(.fieldTask, task, "{\"title\":\"New\",\"team\":\"\(team.text)\"}", in: .manager)
        try deletion.world.settle()
        #expect(try deletion.world.master(task, hasCopyIn: .team(team)).team == team)
        try deletion.world.acme.delete(.team, team, in: .common)
        for _ in 0..<2 { #expect(try !deletion.step()) }
        #expect(try deletion.step())
        #expect(try deletion.dueCount() == Self.taskCount + 4)
        try deletion.expectNoReferences()
        #expect(try deletion.world.master(task, hasCopyIn: nil).team == nil)
    }

    /// The causes of a batch share a step's limit.
    @Test func stepsOfSeveralCausesShareTheLimit() throws {
        var acme = try TestEnvironment()
        var progress = RequeueProgress()
        let causes = (1...3).map { number in
            RequeueProgress.Cause(
                environment: acme.id, key: ObjectKey(realm: 1, kind: .team, id: UUID()), position: number)
        }
        let now = ContinuousClock.now
        #expect(progress.unread(causes, now: now) == Set(causes))
        let counts = [RequeueProgress.countMax / 2, RequeueProgress.countMax, 0]
        for (cause, count) in zip(causes, counts) {
            progress.begin(cause, tasks: (0..<count).map { _ in UUID() }, memberships: [UUID()], now: now)
        }
        var (total, steps) = (0, 0)
        while true {
            let (unfinished, isAny) = try progress.step(causes, in: acme.id, now: now, on: &acme.connection)
            let due = try acme.connection.run("SELECT FROM pipeline.parked").count
            #expect(isAny && due - total <= RequeueProgress.countMax)
            (total, steps) = (due, steps + 1)
            if unfinished.isEmpty { break }
            try #require(steps < 3)
        }
        #expect(total == counts.reduce(3, +) && steps == 2)
        #expect(progress.unread(causes, now: now) == Set(causes))
    }

    /// The object was restored, or another worker processes its event.
    @Test func unusedListsAreDiscarded() throws {
        let environment = EnvironmentID(rawValue: 1)
        let cause = RequeueProgress.Cause(
            environment: environment, key: ObjectKey(realm: 1, kind: .team, id: UUID()), position: 1)
        var progress = RequeueProgress()
        let now = ContinuousClock.now
        progress.begin(cause, tasks: [UUID()], memberships: [], now: now)
        #expect(progress.unread([cause], now: now + RequeueProgress.unusedMax - .seconds(1)).isEmpty)
        #expect(progress.unread([cause], now: now + RequeueProgress.unusedMax) == [cause])
    }
}
