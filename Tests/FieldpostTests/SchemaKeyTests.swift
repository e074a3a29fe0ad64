import Foundation
import Postgres
import TenantMigration
import TestSupport
import Testing

/// Properties of all tables, so that an environment can be moved and the tables distributed.
@Suite(.ownThreads) struct SchemaKeyTests {
    /// Unique indexes that do not begin with the environment, with the reason.
    private static let exceptions = [
        "realm.migration_pkey": "of the installation",
        "realm.lineage_pkey": "of the installation",
        "realm.kind_pkey": "of the installation",
        "realm.kind_name_key": "of the installation",
        "realm.environment_pkey": "it is the environment",
        "realm.environment_name_key": "a name is one environment's",
        "realm.relay_offset_pkey": "of the broker",
        "pipeline.progress_pkey": "of the broker",
        "pipeline.missed_pkey": "of the broker",
        "pipeline.parked_pkey": "a group takes keys of all environments",
        "access.provider_issuer_key": "an issuer identifies the environment",
        "access.domain_pkey": "a domain identifies the environment",
        "access.address_pkey": "an address identifies the environment",
        "access.integration_key_hash_key": "a key identifies the environment",
        "access.audit_pkey": "actions on the installation have no environment",
        "onboarding.session_pkey": "a device is identified by its secret",
        "onboarding.login_pkey": "a login is identified by its state",
        "onboarding.login_confirm_idx": "a response is identified by its secret",
        "onboarding.event_pkey": "of a session",
        "onboarding.event_session_id_name_idx": "of a session",
        "onboarding.counter_pkey": "of the installation",
        "onboarding.rate_pkey": "of addresses",
        "onboarding.refresh_token_device_idx": "a device is identified by its secret",
    ]

    @Test func everyUniqueKeyStartsWithEnvironment() throws {
        var connection = try Connection(try makeFoundationDatabase())
        let rows = try connection.run(
            """
            SELECT n.nspname || '.' || c.relname, a.attname = 'environment_id'
            FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_namespace n ON n.oid = c.relnamespace
            JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
            WHERE i.indisunique AND n.nspname NOT IN ('pg_catalog', 'pg_toast', 'information_schema')
            """
        ).decode(String.self, Bool.self)
        #expect(rows.count > 40)
        #expect(Set(rows.filter { !$0.1 }.map(\.0)) == Set(Self.exceptions.keys))
    }

    @Test func everyEnvironmentTableIsMovedOrExcluded() throws {
        var connection = try Connection(try makeFoundationDatabase())
        let tables = try connection.run(
            """
            SELECT c.table_schema || '.' || c.table_name FROM information_schema.columns c
            JOIN information_schema.tables t USING (table_schema, table_name)
            WHERE c.column_name = 'environment_id' AND t.table_type = 'BASE TABLE'
            """
        ).decode(String.self)
        let moved = MovedTable.all.map(\.name)
        // `discard` deletes the rows of all; these two are last.
        let staying = MoveRemoval.staying + ["realm.relay", "realm.move"]
        #expect(Set(moved).isDisjoint(with: staying))
        #expect((moved + staying).sorted() == tables.sorted())
        #expect(MovedTable.writeBlocked.first == "realm.environment")
    }

    /// The numbers of own kinds differ between installations: each column with them is known to the import.
    @Test func everyMovedKindNumberIsMapped() throws {
        var connection = try Connection(try makeFoundationDatabase())
        let tables = try connection.run(
            """
            SELECT table_schema || '.' || table_name FROM information_schema.columns
            WHERE column_name LIKE '%kind%' AND data_type = 'smallint' AND table_schema <> 'pg_catalog'
                AND table_schema || '.' || table_name <> ALL (
                \(MoveRemoval.staying))
            """
        ).decode(String.self)
        #expect(Set(tables) == Set(MovedTable.all.filter(\.hasKindNumber).map(\.name)))
    }

    /// A page starts after the key of the last row: a key that is not unique would lose rows.
    @Test func movedTableKeyIsPrimaryKey() throws {
        var connection = try Connection(try makeFoundationDatabase())
        for table in MovedTable.all where table.name != "access.audit" {
            let key = try connection.run(
                """
                SELECT a.attname::text FROM pg_index i, unnest(i.indkey) WITH ORDINALITY AS k(number, place),
                    pg_attribute a
                WHERE i.indrelid = \(table.name)::regclass AND i.indisprimary AND a.attrelid = i.indrelid
                    AND a.attnum = k.number AND a.attname <> 'environment_id' ORDER BY k.place
                """
            ).decode(String.self)
            // A primary key without an environment is read by its other columns.
            #expect(table.key == key, "\(table.name)")
        }
    }

    @Test func citusNamesEveryTableOnce() throws {
        var connection = try Connection(try makeFoundationDatabase())
        let tables = try connection.run(
            """
            SELECT table_schema || '.' || table_name FROM information_schema.tables
            WHERE table_type = 'BASE TABLE' AND table_schema NOT IN ('pg_catalog', 'information_schema')
            """
        ).decode(String.self)
        let text = try String(contentsOf: projectFolder.appendingPathComponent("deploy/citus.sql"), encoding: .utf8)
        #expect(text.hasPrefix("-- THIS WAS NOT RUN."))
        let named = text.matches(
            of: /(?:create_distributed_table\('|create_reference_table\('|-- local: )([a-z_]+\.[a-z_]+)/
        ).map { String($0.1) }
        #expect(named.sorted() == tables.sorted())
    }
}
