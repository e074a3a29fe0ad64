import Essentials
import Foundation
import Kafka
import Model
import Postgres
import TestSupport
import Testing

/// What is on its way when the check looks is waited for, and marked where it does not come.
@Suite(.ownThreads) struct CheckSettlingTests {
    private let ana = UUID()
    private let place = #"{"latitude":1,"longitude":2}"#

    /// A position that no manager sees.
    private func environment() throws -> TestEnvironment {
        var environment = try TestEnvironment()
        try environment.letIn("ana", ana)
        try environment.put([(ana, place)], .location, into: .user("ana@example.com"))
        return environment
    }

    private func placeRelay(behind count: Int64, _ environment: inout TestEnvironment) throws {
        try environment.connection.run(
            """
            INSERT INTO realm.relay (environment_id, generation, epoch, published_epoch, position)
            SELECT id, generation, 1, 1, position - \(count) FROM realm.environment
            ON CONFLICT (environment_id) DO UPDATE SET position = excluded.position
            """)
    }

    @Test func whatTheRelayHasNotPublishedIsMarked() throws {
        var environment = try environment()
        #expect(try pending("positions", environment) == ["nothing"])
        try placeRelay(behind: 1, &environment)
        #expect(try pending("positions", environment) == ["change-relay is 1 positions behind"])
        // No service writes what is told of the change log.
        try environment.connection.run("DELETE FROM store.change WHERE kind = \(Kind.location)")
        #expect(try pending("changes", environment) == ["nothing"])
    }

    @Test func whatIsParkedIsMarked() throws {
        var environment = try environment()
        let key = "/users/ana@example.com/Location/\(ana.text)"
        try environment.connection.run(
            """
            INSERT INTO pipeline.parked (group_name, environment_id, key, topic, partition, subject, position, reason,
                is_dead, is_circuit, attempts, next_at)
            VALUES ('location-fan-out', \(environment.id.rawValue), \(key), 'location.events', 0, \(key), 0, 'wait',
                false, false, 0, now() + interval '1 hour')
            """)
        #expect(try pending("positions", environment) == ["location-fan-out has it parked: wait"])
        // Waiting an hour is not on the way: only what is due is waited for.
        try environment.connection.run("UPDATE pipeline.parked SET key = 'other', next_at = now()")
        #expect(try pending("positions", environment) == ["location-fan-out has a key to decide"])
        try environment.connection.run("UPDATE pipeline.parked SET next_at = now() + interval '1 hour'")
        #expect(try pending("positions", environment) == ["nothing"])
    }

    @Test func whatGroupsHaveNotReadIsMarked() async throws {
        let counts = Dictionary(uniqueKeysWithValues: Topics.all.map { ($0.name, $0.partitions) })
        try await withMockCluster(topics: counts) { cluster in
            let environment = try environment()
            #expect(try pending("positions", environment, "--brokers", cluster.address) == ["nothing"])
            var producer = try Producer(brokers: cluster.address)
            try producer.send(Topics.location.name, key: [1], value: [1])
            try producer.send(Topics.entry.name, key: [1], value: [1])
            let isFlushed = producer.flush(waitMax: patienceMax)
            #expect(isFlushed)
            #expect(
                try pending("positions", environment, "--brokers", cluster.address)
                    == ["location-fan-out has 1 messages to read"])
        }
    }

    @Test func aBrokerThatDoesNotAnswerIsSaid() throws {
        let environment = try environment()
        let told = try pending("positions", environment, "--brokers", "127.0.0.1:1")
        #expect(told.count == 1 && told[0].hasPrefix("Kafka does not tell how far location-fan-out is"), "\(told)")
    }

    /// The relay comes to the position, and what is published is decided by then.
    @Test func whatComesBetweenTheLooksIsNotTold() throws {
        var environment = try environment()
        try placeRelay(behind: 1, &environment)
        let conninfo = environment.conninfo
        let check = BackgroundThread {
            let answer = try fieldpost("check", "--what", "positions", "--settle", "240", "--database", conninfo)
            try #require(answer.status == 0 && answer.output.contains("nothing differs"), "\(answer)")
        }
        try waitUntil("it has looked once, and waits for the relay") {
            try environment.connection.run(
                """
                SELECT FROM pg_stat_activity
                WHERE query LIKE '%FROM realm.relay%' AND pid <> pg_backend_pid() AND datname = current_database()
                """
            ).count > 0
        }
        try environment.put([(ana, place)], .location, into: .manager)
        try placeRelay(behind: 0, &environment)
        try check.wait()
    }
}
