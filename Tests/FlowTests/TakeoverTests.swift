import Foundation
import LocalCluster
import Model
import ObjectStore
import Postgres
import Testing

extension FlowTests {
    /// A process that is frozen, or whose host is gone, does not keep its lock.
    struct TakeoverTests {
        /// The second relay publishes what the frozen first one does not; the first one, woken up, does no harm.
        @Test(.timeLimit(.minutes(10))) func theSecondRelayTakesOverFromAFrozenOne() async throws {
            var options = LocalCluster.Options.quick
            options.services = [.relay, .relay.second]
            // The entries are written without lines of their status logs, and no submitter runs.
            try await withCluster("takeover", options, leaving: ["statuses"]) { cluster in
                var log = try ChangeLog(cluster.conninfo)
                try log.write(10)
                try await log.waitUntilPublished()
                let isFirst = cluster.process(.relay)?.logTail().contains("became leader") ?? false
                let frozen = try #require(cluster.process(isFirst ? .relay : .relay.second))
                let start = ContinuousClock.now
                frozen.signal(SIGSTOP)
                try log.write(10)
                try await log.waitUntilPublished()
                print("the second relay published \(ContinuousClock.now - start) after the first one was frozen")

                frozen.signal(SIGCONT)
                try await eventually("the first one has noticed", within: .seconds(120)) {
                    frozen.logTail().contains("worker failed") ? nil : frozen.logTail(bytesMax: 300)
                }
                try log.write(10)
                try await log.waitUntilPublished()
                #expect(frozen.isRunning)
            }
        }
    }
}

/// Writes entries, and sees how far they are published. For one thread.
private struct ChangeLog: ~Copyable {
    private var connection: Connection
    private let environment: EnvironmentID
    private let realm: Int32

    init(_ conninfo: String) throws {
        var connection = try Connection(conninfo)
        let id: Int32 = try connection.run("INSERT INTO realm.environment (name) VALUES ('acme') RETURNING id")[0]
            .value(0)
        let environment = EnvironmentID(rawValue: id)
        var directory = RealmDirectory()
        let path = try RealmPath.user("ana@example.com")
        let found = try directory.id(of: path, in: environment, create: true, on: &connection)
        guard let found else { throw ClusterFailure("there is no realm \(path)") }
        realm = found
        self.environment = environment
        self.connection = connection
    }

    mutating func write(_ count: Int) throws {
        var batch = WriteBatch(environment: environment)
        for _ in 0..<count {
            batch.put(ObjectKey(realm: realm, kind: .timeEntry, id: UUID()), try CanonicalJSON("{}"), decision: 0)
        }
        _ = try batch.commit(on: &connection)
    }

    mutating func waitUntilPublished() async throws {
        let deadline = ContinuousClock.now + .seconds(120)
        let behind: Statement = """
            SELECT e.position - coalesce(r.position, 0) FROM realm.environment e
            LEFT JOIN realm.relay r ON r.environment_id = e.id WHERE e.id = \(environment.rawValue)
            """
        while try connection.run(behind)[0].value(0, as: Int64.self) > 0 {
            try #require(ContinuousClock.now < deadline, "not published")
            try await Task.sleep(for: .milliseconds(20))
        }
    }
}
