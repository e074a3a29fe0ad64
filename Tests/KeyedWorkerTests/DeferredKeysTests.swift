import FoundationEssentials
import Kafka
import Model
import Postgres
import TestSupport
import Testing

@testable import KeyedWorker

@Suite(.ownThreads) struct DeferredKeysTests {
    /// Devices choose ids: one person's deferred entry is not replaced or removed by another person's entry with the
    /// same id.
    @Test func sameIDInTwoRealmsIsTwoKeys() throws {
        var acme = try TestEnvironment()
        let id = UUID()
        let subjects = try ["ana@example.com", "ben@example.com"].map { email in
            EventSubject(realm: try RealmPath.user(email), kind: .timeEntry, id: id)
        }
        let deferrals = subjects.enumerated().map { index, subject in
            DeferredKeys.Deferral(
                subject: subject, partition: TopicPartition(topic: Topics.entry.name, partition: 3), reason: "busy",
                isDead: false, isCircuit: false, attemptCount: 1, wait: .zero, decision: index)
        }
        func take() throws -> Set<EventSubject> {
            let (due, environments) = try DeferredKeys.takeDue(
                DueRequest(countMax: 10, roomMax: 10, exceptions: [:], expedited: [:]), group: "group",
                partitions: [deferrals[0].partition], lease: .seconds(600), on: &acme.connection)
            #expect(environments == [acme.id])
            return Set(due.map(\.subject))
        }
        let release = DeferredKeys.release([(subjects[1].description, 0)], group: "group", environment: acme.id)
        try acme.connection.run(DeferredKeys.deferKeys(deferrals, group: "group", environment: acme.id))
        // Deferred after its key was decided from an earlier state: it stays.
        try acme.connection.run(release)
        #expect(try take() == Set(subjects))
        try acme.connection.run(release)
        try acme.connection.run("UPDATE pipeline.parked SET next_at = now()")
        #expect(try take() == [subjects[0]])
    }

    /// The age of a key that waits for an open circuit is the time since its first deferral.
    @Test func keyOfOpenCircuitKeepsTimeOfFirstDeferral() throws {
        var acme = try TestEnvironment()
        let subject = EventSubject(realm: .users, kind: .timeEntry, id: UUID())
        func deferKey(isCircuit: Bool) throws -> Bool {
            let deferral = DeferredKeys.Deferral(
                subject: subject, partition: TopicPartition(topic: Topics.entry.name, partition: 3), reason: "busy",
                isDead: false, isCircuit: isCircuit, attemptCount: 1, wait: .seconds(60), decision: 0)
            try acme.connection.run(DeferredKeys.deferKeys([deferral], group: "group", environment: acme.id))
            return try acme.connection.run("SELECT parked_at < now() - interval '1 minute' FROM pipeline.parked")[0]
                .decode(Bool.self)
        }
        #expect(try !deferKey(isCircuit: true))
        try acme.connection.run("UPDATE pipeline.parked SET parked_at = parked_at - interval '1 hour'")
        #expect(try deferKey(isCircuit: true))
        #expect(try !deferKey(isCircuit: false))
    }

    /// Takes each environment's oldest keys, up to its capacity, regardless of another's backlog. Keys without a free
    /// slot become due early when there are some.
    @Test func dueKeysAreLimitedByEnvironment() throws {
        var acme = try TestEnvironment()
        let rows = try acme.connection.run(
            "INSERT INTO realm.environment (name) VALUES ('books'), ('third') RETURNING id")
        let books = EnvironmentID(rawValue: try rows[0].value(0))
        let third = EnvironmentID(rawValue: try rows[1].value(0))
        let partition = TopicPartition(topic: Topics.entry.name, partition: 3)
        func park(_ count: Int, in environment: EnvironmentID, _ wait: Duration, dead: Bool = false) throws {
            let deferrals = (0..<count).map { index in
                DeferredKeys.Deferral(
                    subject: EventSubject(realm: .users, kind: .timeEntry, id: UUID()), partition: partition,
                    reason: DeferralCause.noFreeSlot, isDead: dead, isCircuit: false, attemptCount: 1, wait: wait,
                    decision: index)
            }
            try acme.connection.run(DeferredKeys.deferKeys(deferrals, group: "group", environment: environment))
        }
        func take(_ exceptions: [EnvironmentID: Int], roomMax: Int = 100) throws -> [EnvironmentID: Int] {
            let (due, environments) = try DeferredKeys.takeDue(
                DueRequest(countMax: 3, roomMax: roomMax, exceptions: exceptions, expedited: [:]), group: "group",
                partitions: [partition], lease: .seconds(600), on: &acme.connection)
            #expect(environments == [acme.id, books, third])
            return due.reduce(into: [:]) { $0[$1.environment, default: 0] += 1 }
        }
        try park(50, in: acme.id, .zero)
        try park(2, in: books, .zero)
        try park(9, in: third, .seconds(600))
        try park(9, in: third, .zero, dead: true)
        #expect(try take([:]) == [acme.id: 3, books: 2])
        try park(2, in: books, .zero)
        #expect(try take([acme.id: 0, books: 1]) == [books: 1])
        #expect(try take([acme.id: 5]) == [acme.id: 5, books: 1])
        // Up to the total capacity, the longest overdue first.
        try park(3, in: books, .seconds(-600))
        #expect(try take([:], roomMax: 4) == [acme.id: 1, books: 3])
        let count = try DeferredKeys.expedite(
            group: "group", environment: third, partitions: [partition], countMax: 2, on: &acme.connection)
        #expect(count == 2)
        #expect(try take([acme.id: 0]) == [third: 2])
    }

    /// Taking some of many keys reads only those, regardless of the planner's statistics, which may be from an empty
    /// table.
    @Test(arguments: [false, true]) func takingSomeOfManyKeysReadsOnlyThose(isFresh: Bool) throws {
        var acme = try TestEnvironment()
        try acme.connection.runScript("ALTER TABLE pipeline.parked SET (autovacuum_enabled = false)")
        let (countMax, partition) = (50, TopicPartition(topic: Topics.entry.name, partition: 3))
        func park(_ count: Int, _ reason: String, _ wait: Duration) throws {
            let deferrals = (0..<count).map { index in
                DeferredKeys.Deferral(
                    subject: EventSubject(realm: .users, kind: .timeEntry, id: UUID()), partition: partition,
                    reason: reason, isDead: false, isCircuit: false, attemptCount: 1, wait: wait, decision: index)
            }
            try acme.connection.run(DeferredKeys.deferKeys(deferrals, group: "group", environment: acme.id))
        }
        try park(1, "busy", .zero)
        try acme.connection.runScript("ANALYZE pipeline.parked")
        try park(2_000, "busy", .zero)
        try park(2_000, DeferralCause.noFreeSlot, .seconds(600))
        // Count this connection's reads now, not when its process ends.
        _ = try entriesRead(&acme.connection)
        // After five executions a prepared statement may get a generic plan.
        for round in 0..<9 {
            if isFresh { acme.connection = try Connection(acme.conninfo) }
            let before = try entriesRead(&acme.connection)
            let (due, _) = try DeferredKeys.takeDue(
                DueRequest(countMax: countMax, roomMax: countMax, exceptions: [:], expedited: [:]), group: "group",
                partitions: [partition], lease: .seconds(900), on: &acme.connection)
            #expect(due.count == countMax)
            let count = try DeferredKeys.expedite(
                group: "group", environment: acme.id, partitions: [partition], countMax: countMax,
                on: &acme.connection)
            #expect(count == countMax)
            // Skips keys that others have taken meanwhile.
            let passed = Int64(round * countMax * 2)
            let read = try entriesRead(&acme.connection) - before
            #expect(read < Int64(countMax * 10) + passed, "round \(round)")
        }
    }

    /// Another transaction holds a key: the others are taken now, and that one by the next scan.
    @Test func lockedDueKeyIsSkipped() throws {
        var acme = try TestEnvironment()
        let partition = TopicPartition(topic: Topics.task.name, partition: 3)
        let subjects = (0..<3).map { _ in EventSubject(realm: .manager, kind: .fieldTask, id: UUID()) }
        try acme.connection.run(
            DeferredKeys.deferKeys(subjects.map { deferral($0, partition) }, group: "group", environment: acme.id))
        func take(from acme: inout TestEnvironment) throws -> Set<EventSubject> {
            let (due, _) = try DeferredKeys.takeDue(
                DueRequest(countMax: 10, roomMax: 10, exceptions: [:], expedited: [:]), group: "group",
                partitions: [partition], lease: .seconds(600), on: &acme.connection)
            return Set(due.map(\.subject))
        }
        var holder = try Connection(acme.conninfo)
        try holder.transaction { transaction in
            try transaction.run("SELECT FROM pipeline.parked WHERE key = \(subjects[0].description) FOR UPDATE")
            #expect(try take(from: &acme) == Set(subjects[1...]))
        }
        #expect(try take(from: &acme) == [subjects[0]])
        #expect(try take(from: &acme).isEmpty)
    }

    /// A key's decision is written while a cascade makes the key due. The decision has not read the cause, and the row
    /// stays.
    @Test func keyMadeDueDuringDecisionIsNotReleased() throws {
        var acme = try TestEnvironment()
        let partition = TopicPartition(topic: Topics.task.name, partition: 3)
        let subjects = (0..<2).map { _ in EventSubject(realm: .manager, kind: .fieldTask, id: UUID()) }
        // Both are taken, and become due when the lease ends.
        let deferrals = subjects.map { deferral($0, partition, wait: .seconds(600)) }
        try acme.connection.run(DeferredKeys.deferKeys(deferrals, group: "group", environment: acme.id))
        let release = DeferredKeys.release(
            subjects.map { ($0.description, 0) }, group: "group", environment: acme.id)
        let cascade = Cascade.due(
            group: "group", topic: Topics.task, in: acme.id,
            "SELECT \(subjects[0].description), \(subjects[0].id), 'its team is gone', -1")
        let conninfo = acme.conninfo
        var holder = try Connection(conninfo)
        let releasing = try holder.transaction { transaction in
            try transaction.run(cascade)
            let thread = BackgroundThread {
                var connection = try Connection(conninfo)
                try connection.run(release)
            }
            try waitUntil("the release waits for the row") {
                try acme.connection.run(
                    """
                    SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
                    """
                ).count > 0
            }
            return thread
        }
        try releasing.wait()
        #expect(
            try acme.connection.run("SELECT key FROM pipeline.parked").decode(String.self) == [subjects[0].description])
    }

    private func deferral(
        _ subject: EventSubject, _ partition: TopicPartition, wait: Duration = .zero
    ) -> DeferredKeys.Deferral {
        DeferredKeys.Deferral(
            subject: subject, partition: partition, reason: "busy", isDead: false, isCircuit: false, attemptCount: 1,
            wait: wait, decision: 0)
    }

    /// Number of index entries of the table read so far.
    private func entriesRead(_ connection: inout Connection) throws -> Int64 {
        try connection.run("SELECT pg_stat_force_next_flush()")
        return try connection.run(
            "SELECT sum(idx_tup_read)::bigint FROM pg_stat_user_indexes WHERE relname = 'parked'")[0].value(0)
    }
}
