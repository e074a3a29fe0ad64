import FoundationEssentials
import Kafka
import Model
import Postgres
import TestSupport
import Testing

@testable import Work

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
            let due = try acme.connection.run(
                ParkedKeys.takeDue(
                    group: "group", partitions: [parkings[0].partition], lease: .seconds(600), countMax: 10,
                    roomMax: 10, exceptions: []))
            return Set(try ParkedKeys.due(due).map(\.subject))
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
        func take(_ exceptions: [(EnvironmentID, Int)], roomMax: Int = 100) throws -> [EnvironmentID: Int] {
            let due = try acme.connection.run(
                ParkedKeys.takeDue(
                    group: "group", partitions: [partition], lease: .seconds(600), countMax: 3, roomMax: roomMax,
                    exceptions: exceptions))
            return try ParkedKeys.due(due).reduce(into: [:]) { $0[$1.environment, default: 0] += 1 }
        }
        try park(50, in: acme.id, .zero)
        try park(2, in: books, .zero)
        try park(9, in: third, .seconds(600))
        try park(9, in: third, .zero, dead: true)
        #expect(try take([]) == [acme.id: 3, books: 2])
        try park(2, in: books, .zero)
        #expect(try take([(acme.id, 0), (books, 1)]) == [books: 1])
        #expect(try take([(acme.id, 5)]) == [acme.id: 5, books: 1])
        // As many as there is room for, and first those that are due for longest.
        try park(3, in: books, .seconds(-600))
        #expect(try take([], roomMax: 4) == [acme.id: 1, books: 3])
        try acme.connection.run(
            ParkedKeys.hasten(group: "group", environment: third, partitions: [partition], countMax: 2))
        #expect(try take([(acme.id, 0)]) == [third: 2])
    }
}
