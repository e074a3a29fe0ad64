import Foundation
import Postgres
import TestSupport
import Testing

@Suite(.ownThreads) struct AuditTests {
    private let conninfo: String

    init() throws {
        conninfo = try makeFoundationDatabase()
        var connection = try Connection(conninfo)
        try connection.runScript(
            "INSERT INTO realm.environment (id, name) VALUES (1, 'acme'); "
                + "INSERT INTO realm.environment (id, name) VALUES (2, 'other')")
    }

    private func audit(_ arguments: String...) throws -> CommandResult {
        try fieldpost(["audit"] + arguments, environment: ["FIELDPOST_DATABASE_URL": conninfo])
    }

    /// Adds records, one per minute up to now: every hundredth is of acme, the others of another environment.
    private func addRecords(_ count: Int64) throws {
        var connection = try Connection(conninfo)
        try connection.run(
            """
            INSERT INTO access.audit (environment_id, happened_at, actor, action, subject, address)
            SELECT CASE WHEN i % 100 = 0 THEN 1 ELSE 2 END, now() - make_interval(mins => (\(count) - i)::int),
                'a' || i % 7, 'login.succeeded', i::text, 'here'
            FROM generate_series(1, \(count)) AS i
            """)
    }

    private func subjects(_ arguments: String...) throws -> [String?] {
        let result = try fieldpost(
            ["audit", "list", "--json"] + arguments, environment: ["FIELDPOST_DATABASE_URL": conninfo])
        #expect(result.status == 0, "\(result.errors)")
        return try result.rows().map { $0["subject"] as? String }
    }

    /// Pages are read backwards until there are enough records, including distant or rare ones.
    @Test func auditListReadsPagesBackwards() throws {
        try addRecords(12_000)
        #expect(try subjects("--limit", "2") == ["11999", "12000"])
        #expect(try subjects("--limit", "2", "--environment", "acme") == ["11900", "12000"])
        #expect(try subjects("--limit", "100000", "--environment", "acme").count == 120)
        #expect(try subjects("--limit", "100000", "--actor", "a3").count == 1_714)
        #expect(try subjects("--action", "role").isEmpty)
        #expect(try audit("list", "--environment", "none").errors.contains("environment none does not exist"))
    }

    /// The records of one environment are read without those of the others.
    @Test func auditListReadsOnlyMatchingRecords() throws {
        try addRecords(20_000)
        var connection = try Connection(conninfo)
        let before = try statistics(on: &connection)
        #expect(try subjects("--environment", "acme", "--limit", "150").count == 150)
        try waitUntil("the statistics are there") { try statistics(on: &connection).read > before.read }
        #expect(try statistics(on: &connection).read - before.read < 1_000)
    }

    /// The log may be too large for a sequential scan by one statement.
    @Test func auditPruneUsesIndex() throws {
        try addRecords(20_000)
        var connection = try Connection(conninfo)
        let before = try statistics(on: &connection)
        #expect(try audit("prune", "--keep", "1d").status == 0)
        try waitUntil("the statistics are there") { try statistics(on: &connection).deleted > before.deleted }
        #expect(try statistics(on: &connection).scans == before.scans)
    }

    /// PostgreSQL's statistics of the log: sequential scans, index entries read, rows deleted.
    private func statistics(
        on connection: inout Connection
    ) throws -> (scans: Int64, read: Int64, deleted: Int64) {
        let rows = try connection.run(
            """
            SELECT t.seq_scan, t.n_tup_del,
                (SELECT sum(i.idx_tup_read)::bigint FROM pg_stat_user_indexes i WHERE i.relid = t.relid)
            FROM pg_stat_user_tables t WHERE t.schemaname = 'access' AND t.relname = 'audit'
            """)
        return (try rows[0].value(0), try rows[0].value(2), try rows[0].value(1))
    }

    @Test func auditPruneDeletesByPagesAndRecordsItself() throws {
        // 12,000 minutes are 8 days and 8 hours.
        try addRecords(12_000)
        let result = try audit("prune", "--keep", "1d")
        #expect(result.status == 0, "\(result.errors)")
        #expect(result.output == "10560 records removed\n")
        #expect(result.errors == "5000 records removed so far\n10000 records removed so far\n")
        var connection = try Connection(conninfo)
        let rows = try connection.run("SELECT count(*), min(happened_at) > now() - interval '1 day' FROM access.audit")
        #expect(try rows[0].value(0, as: Int64.self) == 1_441)
        #expect(try rows[0].value(1, as: Bool.self))
        #expect(try subjects("--action", "audit") == ["older than 1d"])
        #expect(try audit("prune", "--keep", "1h").status == 2)
    }
}
