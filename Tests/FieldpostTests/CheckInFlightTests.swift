import Essentials
import Foundation
import Kafka
import Model
import Postgres
import TestSupport
import Testing

/// The check waits for work in flight, and marks inconsistencies as pending if it does not finish.
@Suite(.ownThreads) struct CheckInFlightTests {
    private let ana = UUID()
    private let location = #"{"latitude":1,"longitude":2}"#

    /// An environment with a position that has no copy for managers.
    private func environment() throws -> TestEnvironment {
        var environment = try TestEnvironment()
        try environment.letIn("ana", ana)
        try environment.put([(ana, location)], .location, into: .user("ana@example.com"))
        return environment
    }

    private func setRelay(behind count: Int64, _ environment: inout TestEnvironment) throws {
        try environment.connection.run(
            """
            INSERT INTO realm.relay (environment_id, generation, epoch, published_epoch, position)
            SELECT id, generation, 1, 1, position - \(count) FROM realm.environment
            ON CONFLICT (environment_id) DO UPDATE SET position = excluded.position
            """)
    }

    @Test func unpublishedChangesMarkInconsistencyAsPending() throws {
        var environment = try environment()
        #expect(try pending("positions", environment) == ["nothing"])
        try setRelay(behind: 1, &environment)
        #expect(try pending("positions", environment) == ["change-relay is 1 positions behind"])
        // No service's work resolves inconsistencies of the change log.
        try environment.connection.run("DELETE FROM store.change WHERE kind = \(Kind.location)")
        #expect(try pending("changes", environment) == ["nothing"])
    }

    @Test func deferredKeyMarksInconsistencyAsPending() throws {
        var environment = try environment()
        let key = "/users/ana@example.com/Location/\(ana.text)"
        try environment.connection.run(
            """
            INSERT INTO pipeline.parked (group_name, environment_id, key, topic, partition, subject, position, reason,
                is_dead, is_circuit, attempts, next_at)
            VALUES ('location-fan-out', \(environment.id.rawValue), \(key), 'location.events', 0, \(key), 0, 'wait',
                false, false, 0, now() + interval '1 hour')
            """)
        #expect(try pending("positions", environment) == ["location-fan-out has deferred it: wait"])
        // Only due keys are in flight, not those that wait for an hour.
        try environment.connection.run("UPDATE pipeline.parked SET key = 'other', next_at = now()")
        #expect(try pending("positions", environment) == ["location-fan-out has 1 due key"])
        try environment.connection.run("UPDATE pipeline.parked SET next_at = now() + interval '1 hour'")
        #expect(try pending("positions", environment) == ["nothing"])
    }

    @Test func unreadMessagesMarkInconsistencyAsPending() async throws {
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
                    == ["location-fan-out has 1 unread messages"])
        }
    }

    @Test func unavailableBrokerMarksInconsistencyAsPending() throws {
        let environment = try environment()
        let work = try pending("positions", environment, "--brokers", "127.0.0.1:1")
        #expect(work.count == 1 && work[0].hasPrefix("the offsets of location-fan-out are unavailable"), "\(work)")
    }

    /// The relay reaches the position, and the published change is processed between the passes.
    @Test func inconsistencyResolvedBetweenPassesIsNotReported() throws {
        var environment = try environment()
        try setRelay(behind: 1, &environment)
        let conninfo = environment.conninfo
        let check = BackgroundThread {
            let result = try fieldpost("check", "--only", "positions", "--settle", "240", "--database", conninfo)
            try #require(result.status == 0 && result.output.contains("no inconsistencies"), "\(result)")
        }
        try waitUntil("the first pass is over, and the check waits for the relay") {
            try environment.connection.run(
                """
                SELECT FROM pg_stat_activity
                WHERE query LIKE '%FROM realm.relay%' AND pid <> pg_backend_pid() AND datname = current_database()
                """
            ).count > 0
        }
        try environment.put([(ana, location)], .location, into: .manager)
        try setRelay(behind: 0, &environment)
        try check.wait()
    }
}
