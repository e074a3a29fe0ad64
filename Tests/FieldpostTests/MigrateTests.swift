import Essentials
import Foundation
import Model
import ObjectStore
import Postgres
import Tenants
import TestSupport
import Testing

@testable import Fieldpost

@Suite(.ownThreads) struct MigrateTests {
    private static let schema = projectFolder.appendingPathComponent("deploy/schema").path

    private func migrate(_ conninfo: String, _ folder: String = schema) throws -> CommandResult {
        try fieldpost("migrate", "--json", "--schema", folder, environment: ["FIELDPOST_DATABASE_URL": conninfo])
    }

    @Test func repeatedMigrationChangesNothing() throws {
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

    /// Databases have applied them: an edit would not change those.
    @Test func releasedSchemaFilesAreUnchanged() throws {
        let released = [
            "001-foundation.sql": "f35c13d025460a33192a0a3b06e706e67466d0664d4953ae319f2dc3fc9bbc78",
            "002-onboarding.sql": "403b09d24f23809243520b9b547c832f2da291119b4576f1ba3d791ab673a22c",
            "003-permissions.sql": "0527fdd3249ee42be74bb785babfbb38df7643a35d3f6204d21dfdc005dbd1e8",
            "004-poller.sql": "e323f267741ec816cf2b5dae3ee5a0e542594363a710aa141f0cf0f34aedbcc1",
            "005-audiences.sql": "be5cdd870d512dd86b252691523a69a8e76c558cac9b0b754253a2e82ff18d4a",
            "006-incremental.sql": "0ed4d4d0ec0881e8180fe90a4befe6844bb3231007fe5aa35bcc4a36facef8fd",
            "007-limits.sql": "5bd35cbc7dc60c7aad6e8a64fe049398ea007a1fbe65ff3964aff4e3a0f40c5b",
        ]
        let files = try SchemaFile.read(Self.schema)
        for (name, checksum) in released { #expect(files.first { $0.name == name }?.checksum == checksum, "\(name)") }
    }

    /// Some files were released in two forms: databases of both get the same schema.
    @Test(arguments: [true, false]) func bothReleasedFormsMigrateToSameSchema(isOther: Bool) throws {
        let conninfo = try TestServer.shared.makeDatabase()
        var connection = try Connection(conninfo)
        _ = try Migration.run(Array(try SchemaFile.read(Self.schema).prefix(5)), on: &connection)
        if isOther {
            for (name, checksum) in Migration.otherForms {
                try connection.run("UPDATE realm.migration SET checksum = \(checksum) WHERE name = \(name)")
            }
            try connection.runScript(
                """
                ALTER TABLE backend.connection DROP CONSTRAINT connection_kind_check,
                    ADD CONSTRAINT connection_kind_check CHECK (kind IN ('sap', 'economic'));
                INSERT INTO realm.environment (id, name) VALUES (1, 'acme');
                INSERT INTO audience.catalogue SELECT 1, id, id FROM (SELECT gen_random_uuid() AS id) AS prepared
                """)
        }
        let result = try migrate(conninfo)
        #expect(result.status == 0, "\(result.errors)")
        let checks = try connection.run(
            "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = 'connection_kind_check'")
        #expect(try checks.decode(String.self).map { $0.contains("[a-z][a-z0-9-]{0,30}") } == [true])
        #expect(try connection.run("SELECT FROM audience.catalogue").count == 0)
        #expect(try migrate(conninfo).status == 0)
    }

    /// Data of the first schema is moved to the tables of later ones.
    @Test func migrationMovesStoredData() throws {
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
        let result = try migrate(conninfo)
        #expect(result.status == 0, "\(result.errors)")
        let domains = try connection.run("SELECT domain FROM access.domain WHERE environment_id = 1 ORDER BY 1")
        #expect(try domains.map { try $0.value(0, as: String.self) } == ["b.example", "example.com"])
        // If two entries have the id, the ledger belongs to the one with the record; without an entry it has no owner.
        let ledgers = try connection.run("SELECT realm_id FROM submission.ledger ORDER BY backend_id")
        #expect(try ledgers.map { try $0.optional(0, as: Int32.self) } == [5, nil])
        let keys = try connection.run("SELECT key FROM pipeline.parked ORDER BY environment_id")
        #expect(
            try keys.map { try $0.value(0, as: String.self) } == [
                "t/0/7", "/users/ana@example.com/TimeEntry/\(ana)",
            ])
    }

    /// A catalogue in use is kept; one that an integration has prepared without users is not migrated.
    @Test func migrationKeepsUsedCatalogues() throws {
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

    /// Entries whose log has another status or no line get a line; all get the time of the newest one.
    @Test func migrationAddsMissingStatusLines() throws {
        let conninfo = try TestServer.shared.makeDatabase()
        var connection = try Connection(conninfo)
        _ = try Migration.run(Array(try SchemaFile.read(Self.schema).prefix(12)), on: &connection)
        let (silent, moved, right, gone) = (UUID(), UUID(), UUID(), UUID())
        func line(_ entry: UUID, _ status: String, _ time: String, _ position: Int) -> String {
            """
            (1, 5, 'TimeEntryStatus', '\(UUID())', \(position), 0, 0, false, '{"entry": "\(entry)",
                "status": "\(status)", "timestamp": "\(time)"}')
            """
        }
        try connection.runScript(
            """
            INSERT INTO realm.environment (id, name, position) VALUES (1, 'acme', 20), (2, 'other', 7);
            INSERT INTO realm.realm (environment_id, id, path) VALUES (1, 5, '/users/ana@example.com');
            INSERT INTO realm.object (environment_id, realm_id, kind, id, position, source_position, edit_position,
                deleted, fields)
            VALUES (1, 5, 'TimeEntry', '\(silent)', 1, 0, 0, false, '{"status": "released", "text": "a"}'),
                (1, 5, 'TimeEntry', '\(moved)', 2, 0, 2, false, '{"text": "b"}'),
                (1, 5, 'TimeEntry', '\(right)', 3, 0, 3, false, '{"status": "released", "text": "c"}'),
                (1, 5, 'TimeEntry', '\(gone)', 4, 0, 4, true, NULL),
                \(line(moved, "draft", "2026-01-01T00:00:00.000Z", 5)),
                \(line(moved, "invalid", "2126-01-01T00:00:00.000Z", 6)),
                \(line(right, "released", "2026-01-01T01:00:00.007+02:00", 7)),
                \(line(right, "submitted", "2025-12-31T22:00:00.000Z", 8));
            """)
        #expect(try migrate(conninfo).status == 0)
        let objects = try connection.run(
            "SELECT kind, id, position, edit_position, fields FROM realm.object WHERE NOT deleted ORDER BY position")
        var lines: [UUID: [TimeEntryStatus]] = [:]
        var entries: [UUID: TimeEntry] = [:]
        for row in objects {
            let fields = Data(try row.value(4, as: JSONBytes.self).bytes)
            if try row.value(0) == "TimeEntry" {
                entries[try row.value(1)] = try JSONDecoder().decode(TimeEntry.self, from: fields)
            } else {
                let line = try JSONDecoder().decode(TimeEntryStatus.self, from: fields)
                lines[line.entry, default: []].append(line)
            }
        }
        for id in [silent, moved, right] {
            let entry = try #require(entries[id])
            #expect(TimeEntryStatus.objection(to: lines[id] ?? [], of: entry) == nil)
        }
        #expect(entries[silent]?.text == "a" && entries[moved]?.statusAt?.description == "2126-01-01T00:00:00.001Z")
        #expect(lines.mapValues(\.count) == [silent: 1, moved: 3, right: 2])
        #expect(entries[right]?.statusAt?.description == "2025-12-31T23:00:00.007Z")
        // Devices receive them, without an edit.
        let positions = try connection.run("SELECT position FROM realm.change ORDER BY 1").map {
            try $0.value(0, as: Int64.self)
        }
        #expect(positions.count == 5 && Set(positions).isSubset(of: 21...26))
        let counters = try connection.run("SELECT position FROM realm.environment ORDER BY id")
        #expect(try counters.map { try $0.value(0, as: Int64.self) } == [26, 7])
        #expect(try objects.map { try $0.value(3, as: Int64.self) }.max() == 3)
    }

    /// People and teams could name images before images existed.
    @Test func migrationAddsBlobReferences() throws {
        let conninfo = try TestServer.shared.makeDatabase()
        var connection = try Connection(conninfo)
        _ = try Migration.run(Array(try SchemaFile.read(Self.schema).prefix(18)), finishes: true, on: &connection)
        let (blob, person, team) = (UUID(), UUID(), UUID())
        try connection.runScript(
            """
            INSERT INTO realm.environment (id, name) VALUES (1, 'acme'), (2, 'other');
            INSERT INTO realm.realm (environment_id, id, path) VALUES (1, 5, '/common'), (2, 6, '/common');
            INSERT INTO store.object (environment_id, realm_id, kind, id, position, source_position, edit_position,
                deleted, fields)
            VALUES (1, 5, 4, '\(person)', 1, 0, 0, false, '{"name": "A", "avatar": "\(blob)"}'),
                (1, 5, 4, '\(UUID())', 2, 0, 0, false, '{"name": "B", "avatar": "none"}'),
                (1, 5, 4, '\(UUID())', 3, 0, 0, true, NULL),
                (2, 6, 13, '\(team)', 4, 0, 0, false, '{"name": "T", "image": "\(blob)"}'),
                (2, 6, 13, '\(UUID())', 5, 0, 0, false, '{"name": "image"}');
            """)
        #expect(try migrate(conninfo).status == 0)
        let references = try connection.run(
            "SELECT environment_id, id, blob_id FROM blob.reference ORDER BY 1"
        ).decode(Int32.self, UUID.self, UUID.self)
        #expect(references.map(\.0) == [1, 2] && references.map(\.1) == [person, team])
        #expect(references.allSatisfy { $0.2 == blob })
    }

    /// A database of schema 14 keeps its data, and then accepts back ends of any kind.
    @Test func migrationFromSchema14KeepsData() throws {
        let conninfo = try TestServer.shared.makeDatabase()
        var connection = try Connection(conninfo)
        _ = try Migration.run(Array(try SchemaFile.read(Self.schema).prefix(14)), on: &connection)
        try connection.runScript(
            """
            INSERT INTO realm.environment (id, name) VALUES (1, 'acme'), (2, 'other');
            INSERT INTO access.provider (environment_id, issuer, audience, jwks_url) VALUES (1, 'i', 'a', 'j');
            INSERT INTO access.domain VALUES ('example.com', 1);
            INSERT INTO access.person (environment_id, email) VALUES (1, 'ana@example.com');
            INSERT INTO backend.connection (environment_id, kind, url, user_name, password_variable, templates)
            VALUES (1, 'economic', 'http://erp', '', 'ERP', '{"lists": []}');
            INSERT INTO backend.person VALUES (1, 'ana@example.com', '{"employeeNumber": "7"}');
            """)
        #expect(throws: PostgresError.self) { try connect("acme-erp", on: &connection) }
        let result = try migrate(conninfo)
        #expect(result.status == 0, "\(result.errors)")
        #expect(try result.rows().filter { $0["isNew"] as? Bool == true }.count == Int(Schema.oldest) - 14)

        try Schema.check(on: &connection)
        let acme = try #require(try EnvironmentStore.load("acme", on: &connection))
        #expect(acme.backend == "economic" && acme.backendURL == "http://erp" && acme.domains == ["example.com"])
        let list = try fieldpost("environment", "list", "--json", environment: ["FIELDPOST_DATABASE_URL": conninfo])
        #expect(try list.rows().compactMap { $0["backend"] as? String } == ["economic"])
        let invited = try fieldpost(
            "environment", "invite", "--all", "--environment", "acme", "--json",
            environment: ["FIELDPOST_DATABASE_URL": conninfo])
        #expect(try invited.rows().compactMap { $0["email"] as? String } == ["ana@example.com"], "\(invited.errors)")

        for kind in ["", "ACME", "7up", "-erp", "acme erp", String(repeating: "a", count: 32)] {
            #expect(throws: PostgresError.self, "\(kind)") { try connect(kind, on: &connection) }
        }
        try connect("acme-erp", on: &connection)
    }

    /// Connects the second environment to a back end of a kind.
    private func connect(_ kind: String, on connection: inout Connection) throws {
        try connection.run(
            """
            INSERT INTO backend.connection (environment_id, kind, url, user_name, password_variable)
            VALUES (2, \(kind), 'http://erp', '', 'ERP')
            """)
    }

    @Test func concurrentMigrationsApplyFilesOnce() async throws {
        let conninfo = try TestServer.shared.makeDatabase()
        let results = try await withThrowingTaskGroup(of: CommandResult.self) { group in
            for _ in 0..<4 { group.addTask { try migrate(conninfo) } }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(results.allSatisfy { $0.status == 0 })
        #expect(try results.count { try $0.rows().contains { $0["isNew"] as? Bool == true } } == 1)
    }

    @Test func editedSchemaFileIsRejected() throws {
        let conninfo = try TestServer.shared.makeDatabase()
        #expect(try migrate(conninfo).status == 0)
        try withFolder { folder in
            for file in try FileManager.default.contentsOfDirectory(atPath: Self.schema) {
                let text = try String(contentsOfFile: "\(Self.schema)/\(file)", encoding: .utf8)
                let edited = text + (file.hasPrefix("001") ? "-- one more line\n" : "")
                try edited.write(to: folder.appendingPathComponent(file), atomically: true, encoding: .utf8)
            }
            let result = try migrate(conninfo, folder.path)
            #expect(result.status == 1)
            #expect(result.errors.contains("001-foundation.sql was edited after it was applied"))
        }
    }

    @Test func newerDatabaseIsRejected() throws {
        let conninfo = try TestServer.shared.makeDatabase()
        #expect(try migrate(conninfo).status == 0)
        var connection = try Connection(conninfo)
        try connection.run(
            "INSERT INTO realm.migration (number, name, checksum) VALUES (\(Schema.version + 1), '999-later.sql', '')")
        let result = try migrate(conninfo)
        #expect(result.status == 1)
        #expect(result.errors.contains("use a newer program"))
    }

    @Test func failedSchemaFileIsRolledBack() throws {
        let conninfo = try TestServer.shared.makeDatabase()
        try withFolder { folder in
            let text = "CREATE TABLE half (id int);\nCREATE TABLE half (id int);\n"
            try text.write(to: folder.appendingPathComponent("001-broken.sql"), atomically: true, encoding: .utf8)
            let result = try migrate(conninfo, folder.path)
            #expect(result.status == 1)
            #expect(result.errors.contains("001-broken.sql: relation \"half\" already exists"))
            var connection = try Connection(conninfo)
            let rows = try connection.run("SELECT to_regclass('half') IS NULL")
            #expect(try rows[0].value(0, as: Bool.self))
        }
    }

    @Test func missingSchemaNumberIsRejected() throws {
        try withFolder { folder in
            for name in ["001-a.sql", "003-b.sql"] {
                try "SELECT 1".write(to: folder.appendingPathComponent(name), atomically: true, encoding: .utf8)
            }
            let result = try migrate("host=/nowhere", folder.path)
            #expect(result.status == 1)
            #expect(result.errors.contains("003-b.sql: expected number 2"))
        }
    }
}
