import FoundationEssentials
import Kafka
import Model
import Postgres
import TestSupport
import Testing

@testable import KeyedWorker

@Suite(.ownThreads) struct ParkedKeysTests {
    /// Ids are the devices' own choice: what waits for one person's entry is not replaced or removed by another's that
    /// has its id.
    @Test func theSameIDInTwoRealmsIsTwoKeys() throws {
        var acme = try TestEnvironment()
        let id = UUID()
        let subjects = try ["ana@example.com", "ben@example.com"].map { email in
            EventSubject(realm: try RealmPath.user(email), kind: .timeEntry, id: id)
        }
        let parkings = subjects.enumerated().map { index, subject in
            ParkedKeys.Parking(
                subject: subject, partition: TopicPartition(topic: Topics.entry.name, partition: 3), reason: "busy",
                isDead: false, isCircuit: false, attemptCount: 1, wait: .zero, decision: index)
        }
        func take() throws -> Set<EventSubject> {
            let (due, environments) = try ParkedKeys.takeDue(
                DueRequest(countMax: 10, roomMax: 10, exceptions: [:], hastened: [:]), group: "group",
                partitions: [parkings[0].partition], lease: .seconds(600), on: &acme.connection)
            #expect(environments == [acme.id])
            return Set(due.map(\.subject))
        }
        let release = ParkedKeys.release([(subjects[1].description, 0)], group: "group", environment: acme.id)
        try acme.connection.run(ParkedKeys.park(parkings, group: "group", environment: acme.id))
        // It was put there since its key was decided from what was there before: it stays.
        try acme.connection.run(release)
        #expect(try take() == Set(subjects))
        try acme.connection.run(release)
        try acme.connection.run("UPDATE pipeline.parked SET next_at = now()")
        #expect(try take() == [subjects[0]])
    }

    /// Each environment's oldest, as many as it has room for, however many the first one has; and what found no room
    /// comes back early when there is some.
    @Test func eachEnvironmentsKeysAreTakenByThemselves() throws {
        var acme = try TestEnvironment()
        let rows = try acme.connection.run(
            "INSERT INTO realm.environment (name) VALUES ('books'), ('third') RETURNING id")
        let books = EnvironmentID(rawValue: try rows[0].value(0))
        let third = EnvironmentID(rawValue: try rows[1].value(0))
        let partition = TopicPartition(topic: Topics.entry.name, partition: 3)
        func park(_ count: Int, in environment: EnvironmentID, _ wait: Duration, dead: Bool = false) throws {
            let parkings = (0..<count).map { index in
                ParkedKeys.Parking(
                    subject: EventSubject(realm: .users, kind: .timeEntry, id: UUID()), partition: partition,
                    reason: ParkCause.noRoom, isDead: dead, isCircuit: false, attemptCount: 1, wait: wait,
                    decision: index)
            }
            try acme.connection.run(ParkedKeys.park(parkings, group: "group", environment: environment))
        }
        func take(_ exceptions: [EnvironmentID: Int], roomMax: Int = 100) throws -> [EnvironmentID: Int] {
            let (due, environments) = try ParkedKeys.takeDue(
                DueRequest(countMax: 3, roomMax: roomMax, exceptions: exceptions, hastened: [:]), group: "group",
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
        // As many as there is room for, and first those that are due for longest.
        try park(3, in: books, .seconds(-600))
        #expect(try take([:], roomMax: 4) == [acme.id: 1, books: 3])
        let count = try ParkedKeys.hasten(
            group: "group", environment: third, partitions: [partition], countMax: 2, on: &acme.connection)
        #expect(count == 2)
        #expect(try take([acme.id: 0]) == [third: 2])
    }

    /// Taking some of many looks at those, whatever the planner knows of the environment: there may have been none when
    /// it was told last.
    @Test(arguments: [false, true]) func someOfManyAreTakenByTheirPlaces(isFresh: Bool) throws {
        var acme = try TestEnvironment()
        try acme.connection.runScript("ALTER TABLE pipeline.parked SET (autovacuum_enabled = false)")
        let (countMax, partition) = (50, TopicPartition(topic: Topics.entry.name, partition: 3))
        func park(_ count: Int, _ reason: String, _ wait: Duration) throws {
            let parkings = (0..<count).map { index in
                ParkedKeys.Parking(
                    subject: EventSubject(realm: .users, kind: .timeEntry, id: UUID()), partition: partition,
                    reason: reason, isDead: false, isCircuit: false, attemptCount: 1, wait: wait, decision: index)
            }
            try acme.connection.run(ParkedKeys.park(parkings, group: "group", environment: acme.id))
        }
        try park(1, "busy", .zero)
        try acme.connection.runScript("ANALYZE pipeline.parked")
        try park(2_000, "busy", .zero)
        try park(2_000, ParkCause.noRoom, .seconds(600))
        // What this connection has read is counted now, and not when its process ends.
        _ = try entriesRead(&acme.connection)
        // After five uses a prepared statement may get a plan for any values.
        for round in 0..<9 {
            if isFresh { acme.connection = try Connection(acme.conninfo) }
            let before = try entriesRead(&acme.connection)
            let (due, _) = try ParkedKeys.takeDue(
                DueRequest(countMax: countMax, roomMax: countMax, exceptions: [:], hastened: [:]), group: "group",
                partitions: [partition], lease: .seconds(900), on: &acme.connection)
            #expect(due.count == countMax)
            let count = try ParkedKeys.hasten(
                group: "group", environment: acme.id, partitions: [partition], countMax: countMax,
                on: &acme.connection)
            #expect(count == countMax)
            // What others have taken meanwhile is passed on the way.
            let passed = Int64(round * countMax * 2)
            let read = try entriesRead(&acme.connection) - before
            #expect(read < Int64(countMax * 10) + passed, "round \(round)")
        }
    }

    /// Somebody else works on a key: the others are taken, and that one the next time.
    @Test func whatSomebodyHoldsIsPassedOver() throws {
        var acme = try TestEnvironment()
        let partition = TopicPartition(topic: Topics.task.name, partition: 3)
        let subjects = (0..<3).map { _ in EventSubject(realm: .manager, kind: .fieldTask, id: UUID()) }
        try acme.connection.run(
            ParkedKeys.park(subjects.map { parking($0, partition) }, group: "group", environment: acme.id))
        func take(from acme: inout TestEnvironment) throws -> Set<EventSubject> {
            let (due, _) = try ParkedKeys.takeDue(
                DueRequest(countMax: 10, roomMax: 10, exceptions: [:], hastened: [:]), group: "group",
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

    /// A key's decision is written while a cascade makes the key due: it has not seen why, and the row stays.
    @Test func whatIsMadeDueMeanwhileIsNotReleased() throws {
        var acme = try TestEnvironment()
        let partition = TopicPartition(topic: Topics.task.name, partition: 3)
        let subjects = (0..<2).map { _ in EventSubject(realm: .manager, kind: .fieldTask, id: UUID()) }
        // Both are taken: they come again when the lease is over.
        let parkings = subjects.map { parking($0, partition, wait: .seconds(600)) }
        try acme.connection.run(ParkedKeys.park(parkings, group: "group", environment: acme.id))
        let release = ParkedKeys.release(
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

    private func parking(
        _ subject: EventSubject, _ partition: TopicPartition, wait: Duration = .zero
    ) -> ParkedKeys.Parking {
        ParkedKeys.Parking(
            subject: subject, partition: partition, reason: "busy", isDead: false, isCircuit: false, attemptCount: 1,
            wait: wait, decision: 0)
    }

    /// Entries of the table's indexes that were read so far.
    private func entriesRead(_ connection: inout Connection) throws -> Int64 {
        try connection.run("SELECT pg_stat_force_next_flush()")
        return try connection.run(
            "SELECT sum(idx_tup_read)::bigint FROM pg_stat_user_indexes WHERE relname = 'parked'")[0].value(0)
    }
}
