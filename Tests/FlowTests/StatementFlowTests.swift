import LocalCluster
import Postgres
import Testing

extension FlowTests {
    /// The statements that PostgreSQL received: a statement on an environment's tables has its id, so that tables can
    /// be distributed, and environments do not affect each other's cost.
    struct StatementFlowTests {
        /// The beginnings of statements for all environments, with their reasons.
        private static let installationWide: [(start: String, reason: String)] = [
            (
                "SELECT k.id FROM unnest($1, $2, $3) AS k(id, generation, position)",
                "a gateway's counters, each found by its environment's key"
            ),
            (
                "UPDATE realm.environment SET is_awaited = ",
                "idle readers await all counters at once: the relay all, a gateway those of its devices"
            ),
            ("SELECT count(*) FROM realm.environment e WHERE NOT e.is_awaited", "the same"),
            (
                "WITH RECURSIVE e(id) AS ( (SELECT environment_id FROM pipeline.parked",
                "a worker has no environment: those with deferred keys, one row each by the index"
            ),
            ("SELECT coalesce(max(epoch)", "the relay: the epoch is the broker's"),
            ("SELECT id, generation FROM realm.environment", "a worker: an unknown generation of a message"),
            ("SELECT id, name FROM realm.environment", "log lines: the names of all environments"),
            ("SELECT environment_id, domain FROM access.domain", "a gateway lets people of all environments in"),
            ("SELECT environment_id, moved_to FROM realm.move", "the same"),
            ("SELECT environment_id, issuer, audience, jwks_url", "the same"),
            ("SELECT environment_id FROM access.address WHERE email", "an address determines the environment"),
            ("SELECT environment_id, id FROM realm.realm WHERE (environment_id, id) >", "retention goes over all"),
            ("WITH page AS ( SELECT ctid AS place, happened_at FROM access.audit", "retention goes over all"),
            ("SELECT environment_id FROM realm.relay", "retention goes over all"),
            ("SELECT id FROM realm.environment ORDER BY id", "sweeps go over all"),
            ("SELECT environment_id FROM task.copy", "overdue tasks: a sweep that a short run may not reach"),
            ("INSERT INTO realm.environment (name)", "a new one has no number yet"),
        ]

        @Test(.timeLimit(.minutes(20))) func everyStatementNamesItsEnvironment() async throws {
            var options = LocalCluster.Options.quick
            options.database = [
                "shared_preload_libraries": "pg_stat_statements", "pg_stat_statements.max": "10000",
            ]
            try await withCluster("statements", options) { cluster in
                var connection = try Connection(cluster.conninfo)
                // The schema was made before.
                try connection.run(["CREATE EXTENSION pg_stat_statements", "SELECT pg_stat_statements_reset()"])
                try await cluster.startDemo(["--people", "4"]).expectNoDifferences()
                let tables = try connection.run(
                    """
                    SELECT table_schema || '.' || table_name FROM information_schema.columns
                    WHERE column_name = 'environment_id' OR (table_schema, table_name) = ('realm', 'environment')
                    """
                ).decode(String.self)
                let statements = try connection.run(
                    """
                    SELECT regexp_replace(query, '\\s+', ' ', 'g'), calls FROM pg_stat_statements
                    WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database()) ORDER BY calls DESC
                    """
                ).decode(String.self, Int64.self)
                let names = tables.map { $0.replacing(".", with: "\\.") }.joined(separator: "|")
                let table = try Regex("\\b(\(names))\\b")
                let touching = statements.filter { $0.0.contains(table) }
                #expect(touching.count > 60)
                var exceptionCount = 0
                for (text, calls) in touching where !Self.namesEnvironment(text) {
                    let exception = Self.installationWide.first { text.hasPrefix($0.start) }
                    #expect(exception != nil, "\(calls) calls: \(text)")
                    exceptionCount += 1
                }
                print("\(touching.count) statements, \(exceptionCount) of them for all environments")
            }
        }

        /// It compares the environment with a value or with another table's, or writes it.
        private static func namesEnvironment(_ text: String) -> Bool {
            text.contains(/environment_id = |= [a-z]\.environment_id|USING \(environment_id/)
                || text.contains(/environment_id, [a-z_, ]*\) (IN|VALUES|SELECT|=)/)
                || text.contains(/realm\.environment[^;]* WHERE (e\.)?id = \$/)
                || text.hasPrefix("INSERT INTO") && text.contains(/\([^)]*environment_id[^)]*\)/)
        }
    }
}
