import AdminQueries
import Dispatch
import Essentials
import Foundation
import HTTPClient
import HTTPServer
import Model
import Postgres
import ServiceRuntime
import Tenants
import TestSupport
import Testing

@testable import LagMonitor

/// The console while the database is unavailable or busy.
@Suite(.ownThreads) struct ConsoleDatabaseTests {
    /// Renames a database from a connection to another database of the server.
    private func rename(_ conninfo: String, _ from: String, to: String) throws {
        var admin = try Connection(conninfo.replacing("dbname=\(name(conninfo))", with: "dbname=postgres"))
        try admin.runScript("ALTER DATABASE \(from) RENAME TO \(to)")
    }

    private func name(_ conninfo: String) -> String {
        String(conninfo.split(separator: " ").first { $0.hasPrefix("dbname=") }?.dropFirst(7) ?? "")
    }

    @Test func consoleStartsBeforeDatabase() async throws {
        let conninfo = try TestEnvironment().conninfo
        let name = name(conninfo)
        try rename(conninfo, name, to: name + "_renamed")
        try await withConsole(database: conninfo) { fixture in
            let visitor = ConsoleVisitor(fixture)
            #expect(try await visitor.send("GET", "/").status == 200)
            #expect(try await visitor.send("GET", "/api/deferred").status == 401)
            let response = try await visitor.send("GET", try await visitor.logIn(as: ConsoleFixture.administrator))
            #expect(response.status == 503)
            #expect(String(decoding: response.body, as: UTF8.self).contains("The database is unavailable"))
            #expect(visitor.cookies["fieldpost-console"] == nil, "a sign-in requires an audit record")
            try rename(conninfo, name + "_renamed", to: name)
            // Slowly enough to stay within the network's rate limit.
            let end = ContinuousClock.now + patienceMax
            while try await visitor.signIn().status != 303 {
                try #require(.now < end, "timed out: the console does not connect to its database")
                try await Task.sleep(for: .milliseconds(2_500))
            }
            #expect(try await visitor.send("GET", "/api/deferred").status == 200)
        }
    }

    @Test func unavailableDatabaseIsReported() async throws {
        let database = ConsoleDatabase("host=127.0.0.1 port=1 dbname=none")
        let problem = await #expect(throws: Problem.self) { try await database.run { _ in } }
        #expect(problem?.detail == "The database is unavailable.")
    }

    /// Long queries delay only each other.
    @Test func longQueriesDoNotBlockShortOnes() async throws {
        let database = ConsoleDatabase(try makeFoundationDatabase())
        try database.open()
        defer { database.close() }
        let (started, finish) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<4 {
                group.addTask {
                    try await database.run(.long) { _ in
                        started.signal()
                        finish.wait()
                    }
                }
            }
            try await withOwnThread { for _ in 0..<2 { started.wait() } }
            let result = try await database.run { try $0.run("SELECT 1::int4")[0].decode(Int32.self) }
            #expect(result == 1)
            for _ in 0..<4 { finish.signal() }
            try await group.waitForAll()
        }
    }

    @Test func slowQueryTimesOut() async throws {
        let database = ConsoleDatabase(try makeFoundationDatabase())
        try database.open()
        defer { database.close() }
        let problem = await #expect(throws: Problem.self) {
            try await database.run(.long) { connection in
                // Simulates an expired time limit.
                _ = try connection.run("SELECT set_config('statement_timeout', '1ms', false)")
                _ = try connection.run("SELECT pg_sleep(60)")
            }
        }
        #expect(problem?.detail?.contains("exceeded its time limit") == true)
    }

    @Test func timelineReportsWhatWasNotRead() throws {
        var environment = try TestEnvironment()
        let id = UUID()
        try environment.put([(id, "{}")], .note, into: .user("ana@example.com"))
        try environment.connection.run(
            """
            INSERT INTO access.audit (environment_id, actor, action, subject, address, detail)
            SELECT \(environment.id), 'a', CASE WHEN i = 1 THEN 'parked.retried' ELSE 'payload.viewed' END,
                CASE WHEN i < 3 THEN \(id.text) ELSE 'x' END, 'here', '{"group":"g","reason":"it was closed"}'
            FROM generate_series(1, 12000) AS i
            """)
        var limits = ObjectTraceReader.Bounds()
        limits.recordsMax = 10_000
        let limited = try ObjectTrace.load(id, in: environment.id, within: limits, on: &environment.connection)
        #expect(limited[0].gaps.contains { $0.hasPrefix("the audit log: records before ") })
        #expect(!limited[0].hops.contains { $0.service == "audit" })
        limits.recordsMax = 20_000
        let whole = try ObjectTrace.load(id, in: environment.id, within: limits, on: &environment.connection)
        #expect(!whole[0].gaps.contains { $0.hasPrefix("the audit log") })
        // The reason of the retried key is included; views are not.
        let acts = whole[0].hops.filter { $0.service == "audit" }
        #expect(acts.map(\.event) == ["parked.retried"])
        #expect(acts.first?.text.hasSuffix("; deferred because: it was closed") == true)
        limits.deadline = .now
        let late = try ObjectTrace.load(id, in: environment.id, within: limits, on: &environment.connection)
        #expect(late[0].gaps.contains { $0.hasPrefix("the change log: not read") })
        #expect(late[0].gaps.contains { $0.hasPrefix("the audit log: not read") })
    }

    /// The timestamp of a status line is from the writer's clock, which may be behind.
    @Test func statusLineFollowsEarlierWrites() throws {
        var environment = try TestEnvironment()
        let (id, line) = (UUID(), UUID())
        try environment.put([(id, "{}")], .timeEntry, into: .user("ana@example.com"))
        let written = try environment.connection.run("SELECT changed_at FROM store.change")[0].decode(PostgresTime.self)
        let time = Timestamp(millisecondsSinceEpoch: written.millisecondsSince1970 - 1_000)
        let fields = #"{"entry":"\#(id.text)","status":"draft","timestamp":"\#(time.description)"}"#
        try environment.put([(line, fields)], .timeEntryStatus, into: .user("ana@example.com"))
        func hops() throws -> [ObjectTrace.Hop] {
            try ObjectTrace.load(
                id, in: environment.id, within: ObjectTraceReader.Bounds(), on: &environment.connection)[0].hops
        }
        #expect(try hops().map(\.event) == ["written", "status"])
        // The pointer is rewritten later: only the line has the original time.
        try environment.connection.run(
            "UPDATE store.change SET changed_at = changed_at + interval '1 hour' WHERE id = \(line)")
        let later = try hops()
        #expect(later.map(\.event) == ["status", "written"] && later.first?.at == time)
    }

    /// Counts read only the deferred keys of the page's environments.
    @Test func deferredKeysAreCountedPerEnvironmentByIndex() throws {
        let environment = try TestEnvironment()
        var connection = try Connection(environment.conninfo)
        try connection.run(
            "INSERT INTO realm.environment (id, name) SELECT i, 'other-' || i FROM generate_series(10, 300) AS i")
        try connection.run(
            """
            INSERT INTO pipeline.parked (group_name, environment_id, key, topic, partition, subject, position, reason,
                is_dead, is_circuit, attempts, next_at)
            SELECT 'entry-submitter', e.id, k::text, 'entry.events', 0, '', 0, 'closed', k % 2 = 0, k % 4 = 1, 1, now()
            FROM realm.environment e CROSS JOIN generate_series(1, 100) AS k
            """)
        try connection.run(
            """
            INSERT INTO pipeline.parked (group_name, environment_id, key, topic, partition, subject, position, reason,
                is_dead, is_circuit, attempts, next_at)
            SELECT 'defect-submitter', \(environment.id), k::text, 'entry.events', 0, '', 0, 'closed', true, false, 1,
                now()
            FROM generate_series(1, \(EnvironmentStore.deferredCountMax + 10)) AS k
            """)
        try connection.runScript("ANALYZE")
        let page = try EnvironmentStore.page(after: "", countMax: 50, on: &connection)
        #expect(page.count == 50 && page[0].name == "acme")
        #expect(page[0].isMoreParked && page[0].deadCount == EnvironmentStore.deferredCountMax + 51)
        #expect(page[1].deadCount == 50 && page[1].circuitCount == 25 && page[1].waitingCount == 25)
        #expect(!page[1].isMoreParked)
        // The circuit of a back end is open since the first of its keys, for their reason.
        #expect(page[1].circuitReason == "closed" && page[1].circuitSince?.hasSuffix("Z") == true)
        #expect(page[1].circuitNextAt == page[1].circuitSince)
        #expect(page[0].circuitCount > 0 || page[0].circuitReason == nil)
        let plan = try connection.run("EXPLAIN \(EnvironmentStore.page(after: "", countMax: 50))").decode(String.self)
        #expect(!plan.contains { $0.contains("Seq Scan on parked") }, "\(plan.joined(separator: "\n"))")
    }
}
