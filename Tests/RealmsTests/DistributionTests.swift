import Foundation
import LocalCluster
import Postgres
import TestSupport
import Testing

/// Tables can be spread by environment: every key of theirs begins with it, and `deploy/citus.sql` names them all.
@Suite(.ownThreads) struct DistributionTests {
    /// Tables without `environment_id` at the beginning of their keys, each with why.
    static let exceptions = [
        "access.address": "an address tells which environment it belongs to",
        "access.audit": "some records are of the whole installation",
        "access.domain": "a domain tells which environment it belongs to",
        "onboarding.counter": "one row: the order of events of all who come in",
        "onboarding.event": "a session is found by its name alone",
        "onboarding.login": "a login is found by its state alone",
        "onboarding.rate": "a bound of the whole installation",
        "onboarding.session": "a session is found by its name alone",
        "pipeline.missed": "a partition has messages of all environments",
        "pipeline.parked": "a group takes what is due of all environments; the environment comes second",
        "pipeline.progress": "a partition has messages of all environments",
        "realm.environment": "the environment itself: its key is its number",
        "realm.kind": "kinds are the programs' knowledge",
        "realm.lineage": "one row: which history of the database this is",
        "realm.migration": "the schema's files",
        "realm.relay_offset": "a partition has messages of all environments",
    ]

    /// Unique keys beside the primary ones, by which an environment is found.
    static let lookups = [
        "access.integration.integration_key_hash_key", "access.provider.provider_issuer_key",
        "onboarding.refresh_token.refresh_token_device_idx",
    ]

    /// - Returns: Table, unique index, whether it is the primary key, its first column.
    private static func keys() throws -> [(table: String, index: String, isPrimary: Bool, first: String)] {
        var connection = try Connection(try makeFoundationDatabase())
        return try connection.run(
            """
            SELECT n.nspname || '.' || c.relname, i.relname, x.indisprimary, a.attname
            FROM pg_index x
            JOIN pg_class c ON c.oid = x.indrelid JOIN pg_class i ON i.oid = x.indexrelid
            JOIN pg_namespace n ON n.oid = c.relnamespace
            JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = x.indkey[0]
            WHERE x.indisunique AND n.nspname NOT IN ('pg_catalog', 'pg_toast', 'information_schema')
            ORDER BY 1, 2
            """
        ).decode(String.self, String.self, Bool.self, String.self).map {
            (table: $0, index: $1, isPrimary: $2, first: $3)
        }
    }

    @Test func everyKeyBeginsWithItsEnvironment() throws {
        let keys = try Self.keys()
        #expect(keys.count > 60)
        for key in keys where Self.exceptions[key.table] == nil && key.first != "environment_id" {
            let name = "\(key.table).\(key.index)"
            #expect(!key.isPrimary && Self.lookups.contains(name), "\(name) begins with \(key.first)")
        }
        // What is no exception any more is none.
        for table in Self.exceptions.keys {
            let primary = keys.first { $0.table == table && $0.isPrimary }
            #expect(primary.map { $0.first != "environment_id" } ?? false, "\(table) is there, and an exception")
        }
    }

    @Test func theFileForCitusNamesEveryTableOnce() throws {
        let tables = Set(try Self.keys().map(\.table))
        let file = try String(contentsOfFile: LocalCluster.schemaFolder + "/../citus.sql", encoding: .utf8)
        let distributed = file.matches(of: /create_(?:distributed|reference)_table\('([a-z_.]+)'/).map { String($0.1) }
        let local = file.split(separator: "\n").filter { $0.hasPrefix("--   local: ") }
            .flatMap { $0.dropFirst("--   local: ".count).split(separator: " ").map(String.init) }
        let named = distributed + local
        #expect(Set(named) == tables, "missing: \(tables.subtracting(named)), gone: \(Set(named).subtracting(tables))")
        #expect(named.count == Set(named).count, "a table is named twice")
        // What is distributed can be: its keys have the column.
        let keys = Dictionary(grouping: try Self.keys(), by: \.table)
        for table in distributed where !["realm.environment", "realm.kind", "pipeline.parked"].contains(table) {
            #expect(keys[table]?.allSatisfy { $0.first == "environment_id" } ?? false, "\(table)")
        }
    }
}
