import FoundationEssentials
import LocalCluster
import Postgres
import TestSupport
import Testing

@Suite(.ownThreads) struct ConnectionTests {
    @Test func everyTypeRoundTrips() throws {
        try withTestDatabase { connection, _ in
            let id = UUID()
            let rows = try connection.run(
                """
                SELECT \(Int16(-7)), \(Int32(70_000)), \(Int64.min), \(true), \(0.5), \("ærø"), \(id),
                    \(JSONBytes(#"{"a": 1}"#)), \(Bytea([0, 255])), \(PostgresTime(millisecondsSince1970: 1_428_000_000_123)),
                    \(String?.none)
                """)
            let row = rows[0]
            #expect(try row.value(0) == Int16(-7))
            #expect(try row.value(1) == Int32(70_000))
            #expect(try row.value(2) == Int64.min)
            #expect(try row.value(3) == true)
            #expect(try row.value(4) == 0.5)
            #expect(try row.value(5) == "ærø")
            #expect(try row.value(6) == id)
            #expect(try row.value(7) == JSONBytes(#"{"a": 1}"#))
            #expect(try row.value(8) == Bytea([0, 255]))
            #expect(try row.value(9, as: PostgresTime.self).millisecondsSince1970 == 1_428_000_000_123)
            #expect(try row.optional(10, as: String.self) == nil)
            #expect(throws: PostgresError.self) { _ = try row.value(10, as: String.self) }
            #expect(throws: PostgresError.self) { _ = try row.value(0, as: Int64.self) }
        }
    }

    @Test func binaryArraysSupportNullsAndEmptiness() throws {
        try withTestDatabase { connection, _ in
            var texts = BinaryArray(of: String.self)
            texts.append("a")
            texts.append(String?.none)
            texts.append("")
            let ids = [UUID(), UUID(), UUID()]
            let documents = [JSONBytes("{}"), JSONBytes("[1]"), JSONBytes("null")]
            let rows = try connection.run(
                """
                SELECT t, u, j::text, b, z FROM unnest(\(texts), \(ids), \(documents),
                    \([Bytea([1]), Bytea([]), Bytea([2])]),
                    \([PostgresTime(microsecondsSince2000: 1), PostgresTime(microsecondsSince2000: 2),
                       PostgresTime(microsecondsSince2000: 3)])) AS x(t, u, j, b, z)
                """)
            #expect(rows.count == 3)
            let rowValues = try rows.map { row in try (row.optional(0, as: String.self), row.value(1, as: UUID.self)) }
            #expect(rowValues.map(\.0) == ["a", nil, ""])
            #expect(rowValues.map(\.1) == ids)
            let json = try rows.map { row in try row.value(2, as: String.self) }
            #expect(json == ["{}", "[1]", "null"])
            let none = [Int64]()
            #expect(try connection.run("SELECT cardinality(\(none))")[0].value(0) == Int32(0))
            #expect(try connection.run("SELECT \([Int64.max, 2])")[0].value(0) == [Int64.max, 2])
        }
    }

    @Test func failureRollsBackEarlierStatementsOfPipeline() throws {
        try withTestDatabase(schema: ["CREATE TABLE entry (id text PRIMARY KEY)"]) { connection, _ in
            let error = #expect(throws: PostgresError.self) {
                try connection.run(["INSERT INTO entry VALUES ('a')", "INSERT INTO entry VALUES ('a')", "SELECT 1"])
            }
            #expect(error?.sqlState == "23505")
            #expect(error?.isDataError == true)
            #expect(error?.isRetriable == false)
            let left = try connection.run("SELECT id FROM entry")
            #expect(left.count == 0)
        }
    }

    @Test func transactionCommitsAllOrNothing() throws {
        struct Stop: Error {}
        try withTestDatabase(schema: ["CREATE TABLE entry (id text PRIMARY KEY)"]) { connection, _ in
            #expect(throws: Stop.self) {
                try connection.transaction { transaction in
                    try transaction.run("INSERT INTO entry VALUES ('a')")
                    throw Stop()
                }
            }
            #expect(try connection.run("SELECT id FROM entry").count == 0)
            try connection.transaction { try $0.run("INSERT INTO entry VALUES ('b')") }
            #expect(try connection.run("SELECT id FROM entry").count == 1)
            let swallowed = #expect(throws: PostgresError.self) {
                try connection.transaction { transaction in
                    try transaction.run("INSERT INTO entry VALUES ('c')")
                    _ = try? transaction.run("SELECT 1 / 0")
                }
            }
            #expect(swallowed?.sqlState == "25P02")
            #expect(try connection.run("SELECT id FROM entry").count == 1)
        }
    }

    @Test func pipelineLargerThanSocketBuffersSucceeds() throws {
        try withTestDatabase { connection, _ in
            let large = String(repeating: "x", count: 8 << 20)
            let rows = try connection.run((0..<4).map { _ in "SELECT \(large)" })
            for answer in rows { #expect(try answer[0].value(0, as: String.self).utf8.count == large.utf8.count) }
        }
    }

    @Test func lostConnectionIsReopened() throws {
        try withTestDatabase { connection, conninfo in
            let process: Int32 = try connection.run("SELECT pg_backend_pid()")[0].value(0)
            var other = try Connection(conninfo)
            try other.run("SELECT pg_terminate_backend(\(process))")
            let error = #expect(throws: PostgresError.self) { try connection.run("SELECT 1") }
            #expect(error?.isRetriable == true)
            #expect(error?.isConnectionLost == true)
            #expect(try connection.run("SELECT 1")[0].value(0) == Int32(1))
        }
    }

    @Test func allTimeoutsAreSet() throws {
        try withTestDatabase { _, conninfo in
            var limits = Limits()
            limits.statementMax = .seconds(2)
            var connection = try Connection(conninfo, limits: limits)
            let shown = try connection.run(
                """
                SELECT current_setting('statement_timeout'), current_setting('lock_timeout'),
                    current_setting('idle_in_transaction_session_timeout'), current_setting('idle_session_timeout')
                """)
            let values = try (0..<4).map { column in try shown[0].value(column, as: String.self) }
            #expect(values == ["2s", "10s", "10s", "0"])
            let error = #expect(throws: PostgresError.self) { try connection.run("SELECT pg_sleep(600)") }
            #expect(error?.sqlState == "57014")
            #expect(try connection.run("SELECT 1").count == 1)
        }
    }

    /// The session of an unreachable lock holder ends within 11 s: it may be idle for 10 s, and its socket is probed
    /// after 5 s, and then every 2 s, three times.
    @Test func sessionOfUnreachableLockHolderEnds() throws {
        let folder = try ClusterFolder("tcp")
        defer { folder.remove() }
        let port = try Ports.free()
        let server = try ClusterServer(in: folder, options: ["listen_addresses": "127.0.0.1", "port": "\(port)"])
        try server.start()
        defer { server.kill9() }
        var connection = try Connection(
            "host=127.0.0.1 port=\(port) user=\(ClusterServer.user) dbname=postgres", limits: .lockHolder)
        let shown = try connection.run(
            """
            SELECT current_setting('idle_session_timeout'), current_setting('tcp_keepalives_idle'),
                current_setting('tcp_keepalives_interval'), current_setting('tcp_keepalives_count'),
                current_setting('tcp_user_timeout'), current_setting('client_connection_check_interval')
            """)
        let values = try (0..<6).map { column in try shown[0].value(column, as: String.self) }
        #expect(values == ["10s", "5", "2", "3", "10000", "5s"])
    }

    /// A session that the server ends, for example because it was idle, counts as a lost connection.
    @Test func idleSessionIsReopened() throws {
        try withTestDatabase { _, conninfo in
            var limits = Limits()
            limits.idleMax = .milliseconds(50)
            var connection = try Connection(conninfo, limits: limits)
            let process: Int32 = try connection.run("SELECT pg_backend_pid()")[0].value(0)
            var other = try Connection(conninfo)
            while try other.run("SELECT FROM pg_stat_activity WHERE pid = \(process)").count > 0 {
                try other.run("SELECT pg_sleep(0.005)")
            }
            let error = #expect(throws: PostgresError.self) { try connection.run("SELECT 1") }
            #expect(error?.isConnectionLost == true && error?.isRetriable == true)
        }
    }

    /// A process with cached state must not continue with a different database under the same address.
    @Test func connectionIsNotReopenedOnDifferentTimeline() throws {
        try withTestDatabase(schema: [
            "CREATE TABLE history (name text); INSERT INTO history VALUES ('first')"
        ]) { other, conninfo in
            var connection = try Connection(conninfo, check: "SELECT name FROM history")
            func lose() throws {
                let process: Int32 = try connection.run("SELECT pg_backend_pid()")[0].value(0)
                try other.run("SELECT pg_terminate_backend(\(process))")
                let error = #expect(throws: PostgresError.self) { try connection.run("SELECT 1") }
                #expect(error?.isTimelineChange == false)
            }
            try lose()
            #expect(try connection.run("SELECT name FROM history").count == 1)
            try lose()
            try other.run("UPDATE history SET name = 'second'")
            for _ in 0..<2 {
                let error = #expect(throws: PostgresError.self) { try connection.run("SELECT 1") }
                #expect(error?.isTimelineChange == true && error?.isRetriable == false)
            }
            var fresh = try Connection(conninfo, check: "SELECT name FROM history")
            #expect(try fresh.run("SELECT 1").count == 1)
        }
    }

    @Test func failingCopyThrows() throws {
        try withTestDatabase { connection, _ in
            var bytes = 0
            let error = #expect(throws: PostgresError.self) {
                try unsafe connection.copyOut(
                    "COPY (SELECT 1 / (500000 - i) FROM generate_series(1, 600000) i) TO STDOUT"
                ) {
                    bytes += $0.count
                }
            }
            #expect(error?.sqlState == "22012")
            #expect(bytes > 100_000)
            #expect(try connection.run("SELECT 1").count == 1)
            bytes = 0
            try unsafe connection.copyOut("COPY (SELECT 1 FROM generate_series(1, 1000)) TO STDOUT") {
                bytes += $0.count
            }
            #expect(bytes == 2_000)
        }
    }

    @Test func wrongAddressThrowsConnectionRefused() {
        let error = #expect(throws: PostgresError.self) { _ = try Connection("host=127.0.0.1 port=1 dbname=none") }
        #expect(error?.sqlState == nil)
        #expect(error?.message.contains("Connection refused") == true)
    }

    @Test func poolRunsJobsOnConnectionThreads() async throws {
        let conninfo = try TestServer.shared.makeDatabase()
        let pool = try Pool(conninfo, size: 2)
        defer { pool.stop() }
        let sum = try await withThrowingTaskGroup(of: Int64.self) { group in
            for number in 1...100 {
                group.addTask { try await pool.run { try $0.run("SELECT \(Int64(number))")[0].value(0) } }
            }
            return try await group.reduce(0, +)
        }
        #expect(sum == 5050)
    }
}
