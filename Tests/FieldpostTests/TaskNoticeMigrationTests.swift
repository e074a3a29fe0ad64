import Foundation
import Postgres
import TestSupport
import Testing

@testable import Fieldpost

@Suite(.ownThreads) struct TaskNoticeMigrationTests {
    private static let schema = projectFolder.appendingPathComponent("deploy/schema").path

    /// Tasks of schema 33, and those that a service of that version writes later, are marked for `task-fan-out`.
    @Test func migrationMarksTasksWithoutDueDates() throws {
        let conninfo = try TestServer.shared.makeDatabase()
        var connection = try Connection(conninfo)
        let files = try SchemaFile.read(Self.schema)
        _ = try Migration.run(files.filter { $0.number < 34 }, finishes: true, on: &connection)
        func task(_ progress: String) -> String {
            """
            INSERT INTO task.copy (environment_id, task_id, version, realm_id, is_completed)
            VALUES (1, gen_random_uuid(), 1, 5, \(progress))
            """
        }
        try connection.runScript(task("false"))
        _ = try Migration.run(files, finishes: true, on: &connection)
        try connection.runScript(task("true"))
        let rows = try connection.run("SELECT due_at IS NULL AND is_due IS NULL FROM task.copy").decode(Bool.self)
        #expect(rows == [true, true])
        #expect(try connection.run("SELECT task_id FROM device.task_author").count == 0)
    }
}
