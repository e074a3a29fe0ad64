import FoundationEssentials
import Kafka
import Model
import Postgres
import TestSupport
import Testing

@testable import Pipeline

@Suite struct ParkedKeysTests {
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
        try acme.connection.run(ParkedKeys.park(parkings, group: "group", environment: acme.id))
        try acme.connection.run(
            ParkedKeys.release([(subjects[1].description, 0)], group: "group", environment: acme.id))
        let due = try acme.connection.run(
            ParkedKeys.takeDue(
                group: "group", partitions: [parkings[0].partition], lease: .seconds(1), countMax: 10,
                exceptions: []))
        #expect(try ParkedKeys.due(due).map(\.subject) == [subjects[0]])
    }
}
