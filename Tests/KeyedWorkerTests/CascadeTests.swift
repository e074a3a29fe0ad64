import FoundationEssentials
import Kafka
import Model
import ObjectStore
import Postgres
import TestSupport
import Testing

@testable import KeyedWorker

/// Keys that become due because of one change.
@Suite(.ownThreads) struct CascadeTests {
    private struct DeferredRow: Equatable {
        let partition: Int32
        let reason: String
        let isDead: Bool
        let attemptCount: Int32
        let isDue: Bool
    }

    /// The last bytes of the first hundred cover all partitions.
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
        batch.append(
            Cascade.due(
                group: "group", topic: Topics.task, in: batch.environment,
                """
                SELECT subject, id, \(reason), decision
                FROM unnest(\(ids.map(subject)), \(ids), \(decisions)) AS i(subject, id, decision)
                WHERE subject ~ '^/manager/.*[0-9a-f]$'
                """))
    }

    private func deferredRows(_ acme: inout TestEnvironment) throws -> [String: DeferredRow] {
        let rows = try acme.connection.run(
            """
            SELECT key, subject, topic, partition, reason, is_dead, attempts, next_at <= now() FROM pipeline.parked
            WHERE group_name = 'group' AND environment_id = \(acme.id.rawValue)
            """)
        var deferred: [String: DeferredRow] = [:]
        for row in rows {
            let key: String = try row.value(0)
            #expect(try row.value(1) == key && row.value(2) == Topics.task.name)
            deferred[key] = DeferredRow(
                partition: try row.value(3), reason: try row.value(4), isDead: try row.value(5),
                attemptCount: try row.value(6), isDue: try row.value(7))
        }
        return deferred
    }

    /// All keys are due once, on all partitions, and no position is used. Keys of a decision with a version conflict
    /// are not due.
    @Test func keysOfCommittedDecisionsAreDue() throws {
        var acme = try TestEnvironment()
        let users = try acme.realm(.users)
        let before = try acme.connection.run("SELECT position FROM realm.environment")[0].decode(Int64.self)
        var batch = WriteBatch(environment: acme.id)
        batch.expect(ObjectKey(realm: users, kind: .team, id: UUID()), at: 7, decision: 1)
        add(ids + ids, decisions: ids.indices.map { $0 < 150 ? 0 : 1 } + ids.map { _ in 1 }, to: &batch)
        #expect(!batch.isEmpty)
        #expect(try batch.commit(on: &acme.connection).conflicts == [1])
        let deferred = try deferredRows(&acme)
        #expect(Set(deferred.keys) == Set(ids.prefix(150).map(subject)))
        #expect(deferred.values.allSatisfy { $0.isDue && !$0.isDead && $0.reason == "their team is gone" })
        #expect(Set(deferred.values.map(\.partition)) == Set(0..<Int32(Topics.task.partitions)))
        #expect(try acme.connection.run("SELECT position FROM realm.environment")[0].decode(Int64.self) == before)
    }

    /// As after a newer event of the key; only its partition stays.
    @Test func cascadeMakesDeferredKeyDue() throws {
        var acme = try TestEnvironment()
        let deferrals = ids.prefix(2).enumerated().map { index, id in
            DeferredKeys.Deferral(
                subject: EventSubject(realm: .manager, kind: .fieldTask, id: id),
                partition: TopicPartition(topic: Topics.task.name, partition: 77), reason: "garbage",
                isDead: index == 0, isCircuit: index == 1, attemptCount: 9, wait: .seconds(600), decision: index)
        }
        try acme.connection.run(DeferredKeys.deferKeys(deferrals, group: "group", environment: acme.id))
        var batch = WriteBatch(environment: acme.id)
        add(Array(ids.prefix(1)), decisions: [0], to: &batch)
        // Another decision of the transaction may name a key again.
        add(Array(ids.prefix(2)), decisions: [1, 1], reason: "they are gone", to: &batch)
        _ = try batch.commit(on: &acme.connection)
        let due = DeferredRow(partition: 77, reason: "they are gone", isDead: false, attemptCount: 0, isDue: true)
        #expect(try deferredRows(&acme) == [subject(ids[0]): due, subject(ids[1]): due])
        let circuits = try acme.connection.run("SELECT FROM pipeline.parked WHERE is_circuit")
        #expect(circuits.count == 0)
    }

    /// A cascade's cause takes precedence over a decision made without it, in the same transaction or by another
    /// worker.
    @Test(arguments: [true, false]) func dueKeyIsNotDeferred(isSameTransaction: Bool) throws {
        var acme = try TestEnvironment()
        let id = ids[0]
        func deferral(after wait: Duration, attempts: Int = 3) -> Statement {
            DeferredKeys.deferKeys(
                [
                    DeferredKeys.Deferral(
                        subject: EventSubject(realm: .manager, kind: .fieldTask, id: id),
                        partition: TopicPartition(topic: Topics.task.name, partition: 77), reason: "later",
                        isDead: false, isCircuit: false, attemptCount: attempts, wait: wait, decision: 1)
                ], group: "group", environment: acme.id)
        }
        func isDue() throws -> Bool? { try deferredRows(&acme)[subject(id)]?.isDue }
        for _ in 0..<2 {
            var batch = WriteBatch(environment: acme.id)
            add([id], decisions: [0], to: &batch)
            if isSameTransaction { batch.append(deferral(after: .seconds(600))) }
            _ = try batch.commit(on: &acme.connection)
            if !isSameTransaction { try acme.connection.run(deferral(after: .seconds(600))) }
            #expect(try isDue() == true)
            // The worker that takes the key has read the cause: its own wait applies, however late it is written.
            let partition = TopicPartition(
                topic: Topics.task.name, partition: try #require(try deferredRows(&acme)[subject(id)]).partition)
            let (due, _) = try DeferredKeys.takeDue(
                DueRequest(countMax: 3, roomMax: 3, exceptions: [:], expedited: [:]), group: "group",
                partitions: [partition], lease: .zero, on: &acme.connection)
            #expect(due.map(\.attemptCount) == [0])
            try acme.connection.run(deferral(after: .seconds(600)))
            #expect(try isDue() == false)
        }
    }

    // MARK: Taking due keys

    private struct NoCall: ScheduledCall {
        let kind = CallKind.read
        var resultWhenSkipped: Never? { nil }
    }

    private typealias Scheduler = WorkScheduler<String, NoCall>

    private let now = ContinuousClock.now
    private let partition = TopicPartition(topic: Topics.task.name, partition: 0)

    /// Runs a cycle; returns its request for due keys, and the number of decided items.
    private func runCycle(_ work: inout Scheduler, at time: ContinuousClock.Instant) -> (due: DueRequest?, decided: Int)
    {
        var (due, count): (DueRequest?, Int) = (nil, 0)
        while let action = work.next(now: time) {
            switch action {
            case .takeDue(let request):
                due = request
                work.due([], of: request, deferredIn: [])
            case .decide(let items, _):
                count += items.count
                work.committed(work.plan(items.map { _ in .finished }, now: time), missed: [], now: time)
            default: break
            }
        }
        return (due, count)
    }

    /// A worker that has deferred due keys scans for them in the next cycle, without waiting for messages.
    @Test func deferredDueKeysAreScannedInTheNextCycle() {
        let environment = EnvironmentID(rawValue: 1)
        var work = Scheduler(WorkerLimits(), now: now)
        work.assigned([partition])
        #expect(runCycle(&work, at: now).due != nil)
        #expect(runCycle(&work, at: now).due == nil)
        work.deferredDueKeys(in: environment, now: now)
        #expect(work.dueNext <= now && work.mayHaveDeferredKeys(environment))
        #expect(runCycle(&work, at: now).due != nil)
        #expect(runCycle(&work, at: now).due == nil)
    }

    /// A backlog is taken in every cycle, not once per interval.
    @Test func backlogIsScannedInTheNextCycle() {
        let environment = EnvironmentID(rawValue: 1)
        var work = Scheduler(WorkerLimits(), now: now)
        work.assigned([partition])
        let request = DueRequest(countMax: 3, roomMax: 100, exceptions: [:], expedited: [:])
        _ = runCycle(&work, at: now)
        func due(_ count: Int) {
            let keys = (0..<count).map { _ in
                DeferredKeys.Due(
                    environment: environment, subject: EventSubject(realm: .manager, kind: .fieldTask, id: UUID()),
                    partition: partition, attemptCount: 0)
            }
            work.due(keys, of: request, deferredIn: [environment])
        }
        due(2)
        let few = runCycle(&work, at: now)
        #expect(few.due == nil && few.decided == 2)
        due(3)
        let many = runCycle(&work, at: now)
        #expect(many.due != nil && many.decided == 3)
    }
}
