import FoundationEssentials
import Kafka
import Model
import ObjectStore
import Postgres
import TestSupport
import Testing

@testable import KeyedWorker

/// What one change makes many keys wait for.
@Suite(.ownThreads) struct CascadeTests {
    private struct Parked: Equatable {
        let partition: Int32
        let reason: String
        let isDead: Bool
        let attemptCount: Int32
        let isDue: Bool
    }

    /// Their last bytes spread the first hundred already over all partitions.
    private let ids = (0..<200).map { number in
        var bytes = UUID().uuid
        bytes.15 = UInt8(number)
        return UUID(uuid: bytes)
    }

    private func subject(_ id: UUID) -> String {
        EventSubject(realm: .manager, kind: .fieldTask, id: id).description
    }

    private func add(
        _ ids: [UUID], decisions: [Int32], reason: String = "their team is gone", to batch: inout WriteBatch
    ) {
        batch.also(
            Cascade.due(
                group: "group", topic: Topics.task, in: batch.environment,
                """
                SELECT subject, id, \(reason), decision
                FROM unnest(\(ids.map(subject)), \(ids), \(decisions)) AS i(subject, id, decision)
                WHERE subject ~ '^/manager/.*[0-9a-f]$'
                """))
    }

    private func parked(_ acme: inout TestEnvironment) throws -> [String: Parked] {
        let rows = try acme.connection.run(
            """
            SELECT key, subject, topic, partition, reason, is_dead, attempts, next_at <= now() FROM pipeline.parked
            WHERE group_name = 'group' AND environment_id = \(acme.id.rawValue)
            """)
        var found: [String: Parked] = [:]
        for row in rows {
            let key: String = try row.value(0)
            #expect(try row.value(1) == key && row.value(2) == Topics.task.name)
            found[key] = Parked(
                partition: try row.value(3), reason: try row.value(4), isDead: try row.value(5),
                attemptCount: try row.value(6), isDue: try row.value(7))
        }
        return found
    }

    /// All of them are due, over all partitions, once each, with no position used; and those of a decision that missed
    /// are not.
    @Test func keysOfDecisionsThatStandAreDue() throws {
        var acme = try TestEnvironment()
        let users = try acme.realm(.users)
        let before = try acme.connection.run("SELECT position FROM realm.environment")[0].decode(Int64.self)
        var batch = WriteBatch(environment: acme.id)
        batch.expect(ObjectKey(realm: users, kind: .team, id: UUID()), at: 7, decision: 1)
        add(ids + ids, decisions: ids.indices.map { $0 < 150 ? 0 : 1 } + ids.map { _ in 1 }, to: &batch)
        #expect(!batch.isEmpty)
        #expect(try batch.commit(on: &acme.connection).missed == [1])
        let found = try parked(&acme)
        #expect(Set(found.keys) == Set(ids.prefix(150).map(subject)))
        #expect(found.values.allSatisfy { $0.isDue && !$0.isDead && $0.reason == "their team is gone" })
        #expect(Set(found.values.map(\.partition)) == Set(0..<Int32(Topics.task.partitions)))
        #expect(try acme.connection.run("SELECT position FROM realm.environment")[0].decode(Int64.self) == before)
    }

    /// As after a newer event of the key; only where it is worked on stays.
    @Test func aKeyThatIsParkedAlreadyIsDueAnew() throws {
        var acme = try TestEnvironment()
        let parkings = ids.prefix(2).enumerated().map { index, id in
            ParkedKeys.Parking(
                subject: EventSubject(realm: .manager, kind: .fieldTask, id: id),
                partition: TopicPartition(topic: Topics.task.name, partition: 77), reason: "garbage",
                isDead: index == 0, isCircuit: index == 1, attemptCount: 9, wait: .seconds(600), decision: index)
        }
        try acme.connection.run(ParkedKeys.park(parkings, group: "group", environment: acme.id))
        var batch = WriteBatch(environment: acme.id)
        add(Array(ids.prefix(1)), decisions: [0], to: &batch)
        // Another one of the same transaction may name a key again.
        add(Array(ids.prefix(2)), decisions: [1, 1], reason: "they are gone", to: &batch)
        _ = try batch.commit(on: &acme.connection)
        let anew = Parked(partition: 77, reason: "they are gone", isDead: false, attemptCount: 0, isDue: true)
        #expect(try parked(&acme) == [subject(ids[0]): anew, subject(ids[1]): anew])
        let circuits = try acme.connection.run("SELECT FROM pipeline.parked WHERE is_circuit")
        #expect(circuits.count == 0)
    }

    /// What made a key due comes before what was decided without it: in the same transaction, or from another worker.
    @Test(arguments: [true, false]) func aKeyThatIsDueIsNotParkedForLater(isSameTransaction: Bool) throws {
        var acme = try TestEnvironment()
        let id = ids[0]
        func park(_ wait: Duration, attempts: Int = 3) -> Statement {
            ParkedKeys.park(
                [
                    ParkedKeys.Parking(
                        subject: EventSubject(realm: .manager, kind: .fieldTask, id: id),
                        partition: TopicPartition(topic: Topics.task.name, partition: 77), reason: "later",
                        isDead: false, isCircuit: false, attemptCount: attempts, wait: wait, decision: 1)
                ], group: "group", environment: acme.id)
        }
        func isDue() throws -> Bool? { try parked(&acme)[subject(id)]?.isDue }
        for _ in 0..<2 {
            var batch = WriteBatch(environment: acme.id)
            add([id], decisions: [0], to: &batch)
            if isSameTransaction { batch.also(park(.seconds(600))) }
            _ = try batch.commit(on: &acme.connection)
            if !isSameTransaction { try acme.connection.run(park(.seconds(600))) }
            #expect(try isDue() == true)
            // Whoever takes it has seen all: it waits as long as they say, also when they took long.
            let partition = TopicPartition(
                topic: Topics.task.name, partition: try #require(try parked(&acme)[subject(id)]).partition)
            let (due, _) = try ParkedKeys.takeDue(
                DueRequest(countMax: 3, roomMax: 3, exceptions: [:], hastened: [:]), group: "group",
                partitions: [partition], lease: .zero, on: &acme.connection)
            #expect(due.map(\.attemptCount) == [0])
            try acme.connection.run(park(.seconds(600)))
            #expect(try isDue() == false)
        }
    }

    // MARK: Taking them up

    private struct NoCall: ScheduledCall {
        let kind = CallKind.read
        var unmade: Never? { nil }
    }

    private typealias Scheduler = WorkScheduler<String, NoCall>

    private let now = ContinuousClock.now
    private let place = TopicPartition(topic: Topics.task.name, partition: 0)

    /// What a round asks for, and what it decides.
    private func round(_ work: inout Scheduler, at time: ContinuousClock.Instant) -> (due: DueRequest?, decided: Int) {
        var (due, count): (DueRequest?, Int) = (nil, 0)
        while let action = work.next(now: time) {
            switch action {
            case .takeDue(let request):
                due = request
                work.due([], of: request, parkedIn: [])
            case .decide(let items, _):
                count += items.count
                work.committed(work.plan(items.map { _ in .finished }, now: time), missed: [], now: time)
            default: break
            }
        }
        return (due, count)
    }

    /// Whoever has parked keys that are due looks for them in the next round, and does not wait for messages before.
    @Test func theyAreLookedForAtOnce() {
        let environment = EnvironmentID(rawValue: 1)
        var work = Scheduler(WorkerLimits(), now: now)
        work.assigned([place])
        #expect(round(&work, at: now).due != nil)
        #expect(round(&work, at: now).due == nil)
        work.parkedDueKeys(in: environment, now: now)
        #expect(work.dueNext <= now && work.mayHaveParked(environment))
        #expect(round(&work, at: now).due != nil)
        #expect(round(&work, at: now).due == nil)
    }

    /// A backlog is worked off round by round, and not as much at a time as fits into a round every now and then.
    @Test func whereMoreAreDueTheNextRoundLooksAgain() {
        let environment = EnvironmentID(rawValue: 1)
        var work = Scheduler(WorkerLimits(), now: now)
        work.assigned([place])
        let request = DueRequest(countMax: 3, roomMax: 100, exceptions: [:], hastened: [:])
        _ = round(&work, at: now)
        func due(_ count: Int) {
            let keys = (0..<count).map { _ in
                ParkedKeys.Due(
                    environment: environment, subject: EventSubject(realm: .manager, kind: .fieldTask, id: UUID()),
                    partition: place, attemptCount: 0)
            }
            work.due(keys, of: request, parkedIn: [environment])
        }
        due(2)
        let few = round(&work, at: now)
        #expect(few.due == nil && few.decided == 2)
        due(3)
        let many = round(&work, at: now)
        #expect(many.due != nil && many.decided == 3)
    }
}
