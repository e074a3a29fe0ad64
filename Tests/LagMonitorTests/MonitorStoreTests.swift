import Foundation
import Kafka
import LocalCluster
import Model
import Postgres
import TestSupport
import Testing

@testable import LagMonitor

@Suite(.ownThreads) struct MonitorStoreTests {
    private static func park(
        _ group: String, _ reasons: [String], isDead: Bool = false, _ environment: inout TestEnvironment
    ) throws {
        try environment.connection.run(
            """
            INSERT INTO pipeline.parked (group_name, environment_id, key, topic, partition, subject, position, reason,
                is_dead, is_circuit, attempts, next_at)
            SELECT \(group), \(environment.id.rawValue), n::text || \(isDead), 't', 0, 's', 0, r, \(isDead), false, 1,
                now()
            FROM unnest(\(reasons)) WITH ORDINALITY AS i(r, n)
            """)
    }

    private static func reasons(_ environment: inout TestEnvironment) throws -> [MonitorStore.Reason] {
        try MonitorStore.reasons(try environment.connection.run(MonitorStore.reasons))
    }

    @Test func reasonsAreGroupedByTheirBeginning() throws {
        var environment = try TestEnvironment()
        try Self.park(
            "g",
            [
                "PostgreSQL rejected it: 22P02", "PostgreSQL rejected it: 23514", "2 records carry this marker",
                "the project \"Alpha\" is closed", "the project \"Beta\" is closed", "no response",
                "rejected for a1@example.com: closed", "rejected for b2@example.com", "the node 'Oslo' is closed",
            ], &environment)
        try Self.park("g", ["no response"], isDead: true, &environment)
        func reason(_ text: String, isDead: Bool = false, _ count: Int64) -> MonitorStore.Reason {
            MonitorStore.Reason(group: "g", text: text, isDead: isDead, count: count)
        }
        let expected = [
            reason("records carry this marker", 1), reason("PostgreSQL rejected it", 2), reason("no response", 1),
            reason("no response", isDead: true, 1), reason("the project", 2), reason("rejected for", 2),
            reason("the node", 1),
        ]
        let reasons = try Self.reasons(&environment)
        #expect(reasons.count == expected.count && expected.allSatisfy(reasons.contains), "\(reasons)")
    }

    @Test func numberOfReasonsIsLimited() throws {
        var environment = try TestEnvironment()
        let letters = "abcdefghijklmnopqrstuvwxyz".map { String($0) }
        let words = letters + letters.prefix(4).map { $0 + "z" }
        try Self.park("g", words + ["a", "a"], &environment)
        let reasons = try Self.reasons(&environment)
        #expect(reasons.count == 11 && reasons.map(\.count).reduce(0, +) == 32)
        #expect(reasons.first { $0.text == "a" }?.count == 3 && reasons.first { $0.text == "others" }?.count == 20)
    }

    /// Rare reasons are not cut, but their keys count.
    @Test func keysOfManyReasonsAreCounted() throws {
        var environment = try TestEnvironment()
        let count = Int(MonitorStore.reasonTextMax)
        try Self.park("many", (0..<count + 100).map { "record \($0) is closed" }, &environment)
        try Self.park("few", ["no response"], isDead: true, &environment)
        let reasons = try Self.reasons(&environment)
        #expect(reasons.first { $0.group == "many" && $0.text == "record" }?.count == Int64(count))
        #expect(reasons.first { $0.group == "many" && $0.text == "others" }?.count == 100)
        #expect(reasons.first { $0.group == "few" }?.text == "no response")
    }

    @Test func openCircuitsAreCountedByEnvironment() throws {
        var environment = try TestEnvironment()
        try Self.park("g", ["unavailable", "unavailable"], &environment)
        try Self.park("g", ["unavailable"], isDead: true, &environment)
        #expect(try Self.circuits(&environment).isEmpty)
        try environment.connection.run("UPDATE pipeline.parked SET is_circuit = true")
        let expected = MonitorStore.OpenCircuit(environment: "acme", group: "g", keyCount: 2)
        #expect(try Self.circuits(&environment) == [expected])
    }

    private static func circuits(_ environment: inout TestEnvironment) throws -> [MonitorStore.OpenCircuit] {
        try MonitorStore.circuits(try environment.connection.run(MonitorStore.circuits))
    }

    @Test func allEnvironmentsBehindAreCounted() throws {
        var environment = try TestEnvironment()
        let none = try MonitorStore.behind(try environment.connection.run(MonitorStore.behind))
        #expect(none == MonitorStore.Behind())
        try environment.connection.run(
            "INSERT INTO realm.environment (name, position) SELECT 'e' || n, n FROM generate_series(1, 510) n")
        let behind = try MonitorStore.behind(try environment.connection.run(MonitorStore.behind))
        #expect(behind.environmentCount == 510 && behind.positionCount == 510 * 511 / 2)
        #expect(behind.worst.count == 500 && behind.worst.first?.name == "e510")
    }

    @Test func archiveAgeIsThatOfFilesThatWait() throws {
        var environment = try TestEnvironment()
        #expect(try environment.connection.run(MonitorStore.archiveAge).decode(Double.self).isEmpty)
        let folder = try ClusterFolder("archive")
        let full = folder.path + "/full"
        let server = try ClusterServer(
            in: folder, options: ["archive_mode": "on", "archive_command": "test ! -e \(full)"])
        try server.start()
        var connection = try Connection(server.conninfo("postgres"))
        let file = try Self.completeFile(&connection)
        let deadline = ContinuousClock.now + patienceMax
        while try connection.run("SELECT last_archived_wal FROM pg_stat_archiver")[0].decode(String?.self) != file {
            try #require(ContinuousClock.now < deadline)
            try connection.run("SELECT pg_sleep(0.05)")
        }
        // While it is idle, and while the next file is incomplete.
        #expect(try Self.archiveAge(&connection) == 0)
        try connection.run("CREATE TABLE a()")
        #expect(try Self.archiveAge(&connection) == 0)
        try Data().write(to: URL(filePath: full))
        _ = try Self.completeFile(&connection)
        let age = try Self.archiveAge(&connection)
        #expect(age > 0)
        try connection.run("SELECT pg_sleep(0.1)")
        #expect(try Self.archiveAge(&connection) >= age + 0.1)
    }

    private static func archiveAge(_ connection: inout Connection) throws -> Double {
        try connection.run(MonitorStore.archiveAge)[0].decode(Double.self)
    }

    /// - Returns: The name of the WAL file.
    private static func completeFile(_ connection: inout Connection) throws -> String {
        try connection.run("SELECT pg_logical_emit_message(true, 'test', 'content')")
        return try connection.run("SELECT pg_walfile_name(pg_switch_wal())")[0].decode(String.self)
    }

    /// The console's page reads these keys.
    @Test func keysOfTheOverviewAreStable() throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        let environment = MonitorStore.Behind.Environment(name: "acme", positionCount: 2, seconds: 3)
        let behind = MonitorStore.Behind(environmentCount: 1, positionCount: 2, worst: [environment])
        #expect(
            String(decoding: try encoder.encode(behind), as: UTF8.self)
                == #"{"environmentCount":1,"positionCount":2,"worst":[{"name":"acme","positionCount":2,"seconds":3}]}"#)
        let reason = MonitorStore.Reason(group: "g", text: "r", isDead: true, count: 4)
        #expect(
            String(decoding: try encoder.encode(reason), as: UTF8.self)
                == #"{"count":4,"group":"g","isDead":true,"text":"r"}"#)
    }
}
