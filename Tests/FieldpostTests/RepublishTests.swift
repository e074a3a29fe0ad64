import Model
import Postgres
import TestSupport
import Testing

@Suite(.ownThreads) struct RepublishTests {
    @Test func republishIsRequestedInEveryEnvironment() async throws {
        try await withOwnThread {
            let conninfo = try makeFoundationDatabase()
            var connection = try Connection(conninfo)
            try connection.run("INSERT INTO realm.environment (name) VALUES ('acme'), ('tock')")

            let one = try fieldpost("topics", "republish", Topics.entry.name, "--database", conninfo)
            #expect(one.status == 0, "\(one.errors)")
            #expect(one.output.contains("2 environments"))
            let rows = try connection.run("SELECT DISTINCT topic FROM realm.republish")
            #expect(try rows.map { try $0.value(0, as: String.self) } == [Topics.entry.name])

            let all = try fieldpost("topics", "republish", "--database", conninfo)
            #expect(all.status == 0, "\(all.errors)")
            let count = try connection.run("SELECT FROM realm.republish").count
            #expect(count == 2 * Topics.all.count)
            let audit = try connection.run("SELECT FROM access.audit WHERE action = 'topic.republished'")
            #expect(audit.count == 1 + Topics.all.count)
        }
    }

    @Test func ownTopicIsRepublishedInItsEnvironmentOnly() async throws {
        try await withOwnThread {
            let conninfo = try makeFoundationDatabase()
            var connection = try Connection(conninfo)
            try connection.run([
                "INSERT INTO realm.environment (name) VALUES ('acme'), ('tock')",
                "INSERT INTO realm.kind (number, name) VALUES (1001, 'Inspection'), (1002, 'Site')",
                """
                INSERT INTO realm.own_kind (environment_id, kind, topic, image_paths)
                SELECT e.id, k.number, CASE k.number WHEN 1001 THEN 'own.' || e.name || '.inspections' END, '{}'
                FROM realm.environment e, realm.kind k WHERE k.number > 1000
                """,
            ])
            let one = try fieldpost("topics", "republish", "own.acme.inspections", "--database", conninfo)
            #expect(one.status == 0 && one.output.contains("1 environment"), "\(one)")
            let rows = try connection.run(
                """
                SELECT e.name || ' ' || r.topic FROM realm.republish r
                JOIN realm.environment e ON e.id = r.environment_id
                """)
            #expect(try rows.decode(String.self) == ["acme own.acme.inspections"])

            let unknown = try fieldpost("topics", "republish", "own.acme.sites", "--database", conninfo)
            #expect(unknown.status == 1 && unknown.errors.contains("no environment declares"), "\(unknown)")
            let all = try fieldpost("topics", "republish", "--database", conninfo)
            #expect(all.status == 0, "\(all.errors)")
            #expect(try connection.run("SELECT FROM realm.republish").count == 2 * Topics.all.count + 2)
        }
    }

    @Test func unknownTopicIsRejected() throws {
        let result = try fieldpost("topics", "republish", "entries", "--database", "host=127.0.0.1 port=1")
        #expect(result.status == 2)
        #expect(result.errors.contains("no topic entries"))
    }
}
