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

/// The console while the database is away, or has much to do.
@Suite(.ownThreads) struct ConsoleDatabaseTests {
    /// Another database of the same server, from which one can be renamed.
    private func rename(_ conninfo: String, _ from: String, to: String) throws {
        var admin = try Connection(conninfo.replacing("dbname=\(name(conninfo))", with: "dbname=postgres"))
        try admin.runScript("ALTER DATABASE \(from) RENAME TO \(to)")
    }

    private func name(_ conninfo: String) -> String {
        String(conninfo.split(separator: " ").first { $0.hasPrefix("dbname=") }?.dropFirst(7) ?? "")
    }

    @Test func itBeginsWithoutTheDatabaseAndGoesOnWithIt() async throws {
        let conninfo = try TestEnvironment().conninfo
        let name = name(conninfo)
        try rename(conninfo, name, to: name + "_away")
        try await withConsole(database: conninfo) { fixture in
            let visitor = ConsoleVisitor(fixture)
            #expect(try await visitor.send("GET", "/").status == 200)
            #expect(try await visitor.send("GET", "/api/parked").status == 401)
            let answer = try await visitor.send("GET", try await visitor.logIn(as: ConsoleFixture.administrator))
            #expect(answer.status == 503)
            #expect(String(decoding: answer.body, as: UTF8.self).contains("The database does not answer"))
            #expect(visitor.cookies["fieldpost-console"] == nil, "nobody is let in without a record")
            try rename(conninfo, name + "_away", to: name)
            // So often that one network's sign-ins of a minute are not used up meanwhile.
            let end = ContinuousClock.now + patienceMax
            while try await visitor.signIn().status != 303 {
                try #require(.now < end, "it does not find its database")
                try await Task.sleep(for: .milliseconds(2_500))
            }
            #expect(try await visitor.send("GET", "/api/parked").status == 200)
        }
    }

    @Test func whatIsAskedOfADatabaseThatIsAwayIsAProblem() async throws {
        let database = ConsoleDatabase("host=127.0.0.1 port=1 dbname=none")
        let problem = await #expect(throws: Problem.self) { try await database.run { _ in } }
        #expect(problem?.detail == "The database does not answer at the moment.")
    }

    /// Long looks hold up each other, and no other view.
    @Test func longLooksLeaveTheOtherViewsAlone() async throws {
        let database = ConsoleDatabase(try makeFoundationDatabase())
        try database.open()
        defer { database.close() }
        let (begun, go) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<4 {
                group.addTask {
                    try await database.run(.long) { _ in
                        begun.signal()
                        go.wait()
                    }
                }
            }
            try await withOwnThread { for _ in 0..<2 { begun.wait() } }
            let answer = try await database.run { try $0.run("SELECT 1::int4")[0].decode(Int32.self) }
            #expect(answer == 1)
            for _ in 0..<4 { go.signal() }
            try await group.waitForAll()
        }
    }

    @Test func whatTakesTooLongIsGivenUp() async throws {
        let database = ConsoleDatabase(try makeFoundationDatabase())
        try database.open()
        defer { database.close() }
        let problem = await #expect(throws: Problem.self) {
            try await database.run(.long) { connection in
                // As when its time is over.
                _ = try connection.run("SELECT set_config('statement_timeout', '1ms', false)")
                _ = try connection.run("SELECT pg_sleep(60)")
            }
        }
        #expect(problem?.detail?.contains("was given up") == true)
    }

    @Test func aTimeLineSaysWhatWasNotLookedAt() throws {
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
        var bounds = StoryReader.Bounds()
        bounds.recordsMax = 10_000
        let bounded = try Story.load(id, in: environment.id, within: bounds, on: &environment.connection)
        #expect(bounded[0].gaps.contains { $0.hasPrefix("the audit log: records before ") })
        #expect(!bounded[0].hops.contains { $0.service == "audit" })
        bounds.recordsMax = 20_000
        let whole = try Story.load(id, in: environment.id, within: bounds, on: &environment.connection)
        #expect(!whole[0].gaps.contains { $0.hasPrefix("the audit log") })
        // Why it was parked is told; who only looked at it is not.
        let acts = whole[0].hops.filter { $0.service == "audit" }
        #expect(acts.map(\.event) == ["parked.retried"])
        #expect(acts.first?.text.hasSuffix("; it was parked: it was closed") == true)
        bounds.deadline = .now
        let late = try Story.load(id, in: environment.id, within: bounds, on: &environment.connection)
        #expect(late[0].gaps.contains { $0.hasPrefix("the change log: not looked at") })
        #expect(late[0].gaps.contains { $0.hasPrefix("the audit log: not looked at") })
    }

    /// A line of the status log has the clock of who wrote it, which may be behind.
    @Test func aLineIsToldAfterWhatWasWrittenBeforeIt() throws {
        var environment = try TestEnvironment()
        let (id, line) = (UUID(), UUID())
        try environment.put([(id, "{}")], .timeEntry, into: .user("ana@example.com"))
        let written = try environment.connection.run("SELECT changed_at FROM store.change")[0].decode(PostgresTime.self)
        let time = Timestamp(millisecondsSinceEpoch: written.millisecondsSince1970 - 1_000)
        let fields = #"{"entry":"\#(id.text)","status":"draft","timestamp":"\#(time.description)"}"#
        try environment.put([(line, fields)], .timeEntryStatus, into: .user("ana@example.com"))
        func told() throws -> [Story.Hop] {
            try Story.load(id, in: environment.id, within: StoryReader.Bounds(), on: &environment.connection)[0].hops
        }
        #expect(try told().map(\.event) == ["written", "status"])
        // Its pointer is made anew: when it was written is told by the line alone.
        try environment.connection.run(
            "UPDATE store.change SET changed_at = changed_at + interval '1 hour' WHERE id = \(line)")
        let hops = try told()
        #expect(hops.map(\.event) == ["status", "written"] && hops.first?.at == time)
    }

    /// What is parked of other environments is not read.
    @Test func environmentsCountTheirOwnParkedKeysByTheirKeys() throws {
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
            FROM generate_series(1, \(EnvironmentStore.parkedCountMax + 10)) AS k
            """)
        try connection.runScript("ANALYZE")
        let page = try EnvironmentStore.page(after: "", countMax: 50, on: &connection)
        #expect(page.count == 50 && page[0].name == "acme")
        #expect(page[0].isMoreParked && page[0].deadCount == EnvironmentStore.parkedCountMax + 51)
        #expect(page[1].deadCount == 50 && page[1].circuitCount == 25 && page[1].waitingCount == 25)
        #expect(!page[1].isMoreParked)
        let plan = try connection.run("EXPLAIN \(EnvironmentStore.page(after: "", countMax: 50))").decode(String.self)
        #expect(!plan.contains { $0.contains("Seq Scan on parked") }, "\(plan.joined(separator: "\n"))")
    }
}
