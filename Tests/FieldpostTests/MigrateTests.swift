import Foundation
import Postgres
import Realms
import TestSupport
import Testing

@testable import Fieldpost

@Suite struct MigrateTests {
    private static let schema = projectFolder.appendingPathComponent("deploy/schema").path

    private func migrate(_ conninfo: String, _ folder: String = schema) throws -> Answer {
        try fieldpost("migrate", "--json", "--schema", folder, environment: ["FIELDPOST_DATABASE_URL": conninfo])
    }

    @Test func aSecondTimeChangesNothing() throws {
        let conninfo = try TestServer.shared.makeDatabase()
        let first = try migrate(conninfo)
        #expect(first.status == 0, "\(first.errors)")
        #expect(try first.rows().allSatisfy { $0["isNew"] as? Bool == true })
        #expect(try first.rows().count == Int(Schema.version))
        let second = try migrate(conninfo)
        #expect(second.status == 0)
        #expect(try second.rows().allSatisfy { $0["isNew"] as? Bool == false })
        #expect(try second.rows().count == Int(Schema.version))
        var connection = try Connection(conninfo)
        try Schema.check(on: &connection)
    }

    /// What the first schema held is moved to where the later ones look for it.
    @Test func whatIsStoredIsTakenAlong() throws {
        let conninfo = try TestServer.shared.makeDatabase()
        var connection = try Connection(conninfo)
        _ = try Migration.run(Array(try SchemaFile.read(Self.schema).prefix(1)), on: &connection)
        let (ana, ghost) = (UUID(), UUID())
        try connection.runScript(
            """
            INSERT INTO realm.environment (id, name) VALUES (1, 'acme');
            INSERT INTO access.provider VALUES (1, '{Example.com,example.com,b.example}', 'i', 'a', 'j');
            INSERT INTO realm.realm VALUES (1, 5, '/users/ana@example.com');
            INSERT INTO realm.realm VALUES (1, 6, '/users/ben@example.com');
            INSERT INTO realm.object VALUES (1, 6, 'TimeEntry', '\(ana)', 1, 0, 1, false, '{"status": "draft"}');
            INSERT INTO realm.object VALUES (1, 5, 'TimeEntry', '\(ana)', 2, 0, 2, false, '{"backendId": "B-1"}');
            INSERT INTO submission.ledger VALUES (1, '\(ana)', 1, 'settled', 'create', 2, now(), 'B-1', null, null, 1);
            INSERT INTO submission.ledger VALUES (1, '\(ghost)', 1, 'settled', 'create', 2, now(), 'B-2', null, null,
                1);
            INSERT INTO pipeline.parked VALUES ('g', 1, '\(ana)', 't', 0, '/users/ana@example.com/TimeEntry/\(ana)',
                0, 'busy', true, false, 1, now(), now());
            INSERT INTO pipeline.parked VALUES ('g', 0, 't/0/7', 't', 0, 't/0/7', 0, 'poison', true, false, 0,
                now(), now());
            """)
        let answer = try migrate(conninfo)
        #expect(answer.status == 0, "\(answer.errors)")
        let domains = try connection.run("SELECT domain FROM access.domain WHERE environment_id = 1 ORDER BY 1")
        #expect(try domains.map { try $0.value(0, as: String.self) } == ["b.example", "example.com"])
        // Where two entries have the id, the ledger is theirs who have its record; without an entry it is nobody's.
        let ledgers = try connection.run("SELECT realm_id FROM submission.ledger ORDER BY backend_id")
        #expect(try ledgers.map { try $0.optional(0, as: Int32.self) } == [5, nil])
        let keys = try connection.run("SELECT key FROM pipeline.parked ORDER BY environment_id")
        #expect(
            try keys.map { try $0.value(0, as: String.self) } == [
                "t/0/7", "/users/ana@example.com/TimeEntry/\(ana)",
            ])
    }

    /// A catalogue that somebody has goes on; one that an integration has prepared for nobody yet is left alone.
    @Test func cataloguesFromBeforeGoOn() throws {
        let conninfo = try TestServer.shared.makeDatabase()
        var connection = try Connection(conninfo)
        _ = try Migration.run(Array(try SchemaFile.read(Self.schema).prefix(4)), on: &connection)
        let (node, used, prepared) = (UUID(), UUID(), UUID())
        func text(_ id: UUID) -> String { id.uuidString.lowercased() }
        try connection.runScript(
            """
            INSERT INTO realm.environment (id, name) VALUES (1, 'acme');
            INSERT INTO realm.realm (environment_id, id, path) VALUES (1, 5, '/users/ana@example.com'),
                (1, 6, '/catalogues/\(text(used))'), (1, 7, '/catalogues/\(text(prepared))');
            INSERT INTO realm.object (environment_id, realm_id, kind, id, position, source_position, edit_position,
                deleted, fields)
            VALUES (1, 5, 'User', '\(UUID())', 1, 0, 0, false, '{"catalogue": "\(text(used))"}'),
                (1, 6, 'ReportingTreeNode', '\(node)', 2, 0, 0, false, '{"name": "P1"}'),
                (1, 7, 'ReportingTreeNode', '\(node)', 3, 0, 0, false, '{"name": "P1"}');
            """)
        #expect(try migrate(conninfo).status == 0)
        let rows = try connection.run(
            """
            SELECT p.email, p.catalogue, t.digests = uuid_send(\(node)) || uuid_send(\(node)), t.nodes->>\(text(node))
            FROM audience.person p JOIN audience.catalogue c ON c.id = p.catalogue AND c.tree = p.tree
            JOIN audience.tree t ON t.digest = c.tree
            """)
        try #require(rows.count == 1)
        #expect(try rows[0].value(0) == "ana@example.com" && rows[0].value(1) == used && rows[0].value(2))
        #expect(try connection.run("SELECT count(*) FROM audience.catalogue")[0].value(0, as: Int64.self) == 1)
    }

    @Test func twoAtOnceApplyItOnce() async throws {
        let conninfo = try TestServer.shared.makeDatabase()
        let answers = try await withThrowingTaskGroup(of: Answer.self) { group in
            for _ in 0..<4 { group.addTask { try migrate(conninfo) } }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(answers.allSatisfy { $0.status == 0 })
        #expect(try answers.count { try $0.rows().contains { $0["isNew"] as? Bool == true } } == 1)
    }

    @Test func anEditedFileIsNamed() throws {
        let conninfo = try TestServer.shared.makeDatabase()
        #expect(try migrate(conninfo).status == 0)
        try withFolder { folder in
            for file in try FileManager.default.contentsOfDirectory(atPath: Self.schema) {
                let text = try String(contentsOfFile: "\(Self.schema)/\(file)", encoding: .utf8)
                let edited = text + (file.hasPrefix("001") ? "-- one more line\n" : "")
                try edited.write(to: folder.appendingPathComponent(file), atomically: true, encoding: .utf8)
            }
            let answer = try migrate(conninfo, folder.path)
            #expect(answer.status == 1)
            #expect(answer.errors.contains("001-foundation.sql was edited after it was applied"))
        }
    }

    @Test func aDatabaseNewerThanTheProgramIsRefused() throws {
        let conninfo = try TestServer.shared.makeDatabase()
        #expect(try migrate(conninfo).status == 0)
        var connection = try Connection(conninfo)
        try connection.run(
            "INSERT INTO realm.migration (number, name, checksum) VALUES (\(Schema.version + 1), '999-later.sql', '')")
        let answer = try migrate(conninfo)
        #expect(answer.status == 1)
        #expect(answer.errors.contains("use a newer program"))
    }

    @Test func aFileThatFailsLeavesNothingBehind() throws {
        let conninfo = try TestServer.shared.makeDatabase()
        try withFolder { folder in
            let text = "CREATE TABLE half (id int);\nCREATE TABLE half (id int);\n"
            try text.write(to: folder.appendingPathComponent("001-broken.sql"), atomically: true, encoding: .utf8)
            let answer = try migrate(conninfo, folder.path)
            #expect(answer.status == 1)
            #expect(answer.errors.contains("001-broken.sql: relation \"half\" already exists"))
            var connection = try Connection(conninfo)
            let rows = try connection.run("SELECT to_regclass('half') IS NULL")
            #expect(try rows[0].value(0, as: Bool.self))
        }
    }

    @Test func aNumberThatIsMissingIsNamed() throws {
        try withFolder { folder in
            for name in ["001-a.sql", "003-b.sql"] {
                try "SELECT 1".write(to: folder.appendingPathComponent(name), atomically: true, encoding: .utf8)
            }
            let answer = try migrate("host=/nowhere", folder.path)
            #expect(answer.status == 1)
            #expect(answer.errors.contains("003-b.sql: expected number 2"))
        }
    }
}
