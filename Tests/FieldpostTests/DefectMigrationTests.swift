import Foundation
import Postgres
import TestSupport
import Testing

@testable import Fieldpost

@Suite(.ownThreads) struct DefectMigrationTests {
    private static let schema = projectFolder.appendingPathComponent("deploy/schema").path

    /// Commands of schema 30 stay; later ones have the mark of reads.
    @Test func migrationDistinguishesReads() throws {
        let conninfo = try TestServer.shared.makeDatabase()
        var connection = try Connection(conninfo)
        let files = try SchemaFile.read(Self.schema)
        _ = try Migration.run(Array(files.prefix(30)), finishes: true, on: &connection)
        func command(_ position: Int, _ operation: String) -> String {
            """
            INSERT INTO store.object (environment_id, realm_id, kind, id, position, source_position, edit_position,
                deleted, fields)
            VALUES (1, 5, 23, '\(UUID())', \(position), 0, \(position), false,
                '{"operation": "\(operation)", "status": "done", "submitRequested": true}');
            """
        }
        try connection.runScript(
            """
            INSERT INTO realm.environment (id, name) VALUES (1, 'acme');
            INSERT INTO realm.realm (environment_id, id, path) VALUES (1, 5, '/users/ana@example.com');
            """ + command(1, "choices"))
        _ = try Migration.run(files, finishes: true, on: &connection)
        try connection.runScript(command(2, "choices") + command(3, "read") + command(4, "modify"))
        let reads = try connection.run("SELECT is_reading FROM defect.command ORDER BY edit_position")
        #expect(try reads.decode(Bool.self) == [false, true, true, false])
    }
}
