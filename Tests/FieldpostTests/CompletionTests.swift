import Model
import Postgres
import TestSupport
import Testing

/// The candidates that the completion scripts of shells request.
@Suite(.ownThreads) struct CompletionTests {
    /// Returns the candidates for the last argument of a command.
    private func complete(
        _ command: String..., argument: String = "positional@0", word: String = "", database: String
    ) throws -> [String] {
        let words = ["fieldpost"] + command + [word]
        let result = try fieldpost(
            ["---completion"] + command + ["--", argument, "\(words.count - 1)", "\(word.count)"] + words,
            environment: ["FIELDPOST_DATABASE_URL": database])
        #expect(result.status == 0 && result.errors.isEmpty, "\(result)")
        return result.output.split(separator: "\n").map(String.init)
    }

    @Test func environmentsAreCompleted() throws {
        let environment = try TestEnvironment()
        var connection = try Connection(environment.conninfo)
        try connection.run("INSERT INTO realm.environment (name) VALUES ('books'), ('acme-test')")
        let database = environment.conninfo
        #expect(try complete("environment", "show", word: "ac", database: database) == ["acme", "acme-test"])
        #expect(
            try complete("deferred", "list", argument: "--environment", database: database)
                == ["acme", "acme-test", "books"])
        #expect(try complete("environment", "defects", "check", word: "none", database: database).isEmpty)
    }

    @Test func keysAreCompletedByPathAndByID() throws {
        let environment = try TestEnvironment()
        let id = "8c1f7a0e-0000-4000-8000-000000000001"
        let key = "/users/ana@example.com/TimeEntry/\(id)"
        var connection = try Connection(environment.conninfo)
        try connection.run(
            """
            INSERT INTO pipeline.parked (group_name, environment_id, key, topic, partition, subject, position, reason,
                is_dead, is_circuit, attempts, next_at)
            VALUES ('entry-submitter', \(environment.id), \(key), 'entry.events', 0, \(key), 0, 'busy', false, false, 1,
                now())
            """)
        let database = environment.conninfo
        #expect(try complete("deferred", "show", word: "/users/ana", database: database) == [key])
        #expect(try complete("deferred", "show", database: database) == [key])
        #expect(try complete("trace", word: "8C1F", database: database) == [id])
        #expect(try complete("deferred", "show", word: "/manager", database: database).isEmpty)
    }

    /// A shell must not wait for the database, nor show its errors.
    @Test func unavailableDatabaseCompletesNothing() throws {
        #expect(try complete("environment", "show", database: "host=/nowhere").isEmpty)
        #expect(try complete("environment", "show", database: "").isEmpty)
    }

    @Test func topicsAreCompletedWithThoseOfOwnKinds() throws {
        let environment = try TestEnvironment()
        var connection = try Connection(environment.conninfo)
        try connection.run([
            "INSERT INTO realm.kind (number, name) VALUES (1001, 'Inspection')",
            """
            INSERT INTO realm.own_kind (environment_id, kind, topic, image_paths)
            VALUES (\(environment.id), 1001, 'own.acme.inspections', '{}')
            """,
        ])
        let database = environment.conninfo
        #expect(try complete("topics", "describe", word: "own.", database: database) == ["own.acme.inspections"])
        #expect(try complete("topics", "describe", word: "ent", database: database) == [Topics.entry.name])
        #expect(try complete("topics", "describe", database: database).count == Topics.all.count + 1)
        #expect(try complete("topics", "describe", database: "").count == Topics.all.count)
    }

    @Test func scriptsHaveGroups() throws {
        let script = try fieldpost("--generate-completion-script", "bash").output
        #expect(script.contains(Topics.entry.consumers[0]))
    }
}
