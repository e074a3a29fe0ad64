import Essentials
import ObjectStore
import Postgres

/// The state of a database.
struct DatabaseFacts: Equatable, Sendable {
    /// `server_version_num`: 150018 is 15.18.
    var versionNumber: Int32
    var version: String
    var encoding: String
    var isSynchronous: Bool
    /// Whether `fsync` and `full_page_writes` are on.
    var isDurable: Bool
    var connectionsMax: Int32
    var connectionsReserved: Int32
    var connectionsUsed: Int32
    var isReadOnly: Bool
    var user: String
    /// The difference between its clock and this machine's; accurate to half of the response time.
    var clockAhead: Duration
    /// The number of the newest applied schema file; 0: none.
    var schema: Int32
    /// The schema versions that this program supports.
    var schemas = Schema.oldest...Schema.version
    /// Whether its lineage is unchanged, as far as PostgreSQL can detect; `nil` for a schema without lineage.
    var isUnchanged: Bool?
    /// Tables that its user may not read, and those that the user may read but not write.
    var unreadable: [String]
    var unwritable: [String]
    /// Number of dead-lettered keys, counted up to `deadKeysMax`.
    var deadKeys: Int64 = 0

    /// The state of the WAL archive; `nil` if `archive_mode` is off.
    var archive: Archive?

    static let deadKeysMax: Int64 = 10_000

    struct Archive: Equatable, Sendable {
        /// Time since a file was archived; zero if no complete file waits.
        var wait: Duration
        /// Whether the last attempt failed.
        var isFailing = false
        /// Whether `archive_timeout` completes files.
        var hasTimeout = true
    }

    static func load(on connection: inout Connection) throws -> DatabaseFacts {
        let before = Timestamp.now()
        let time = try connection.run("SELECT clock_timestamp()")[0].decode(Timestamp.self)
        let after = Timestamp.now()
        let middle = (before.millisecondsSinceEpoch + after.millisecondsSinceEpoch) / 2
        let results = try connection.run([
            """
            SELECT current_setting('server_version_num')::int4, current_setting('server_version'),
                pg_encoding_to_char(encoding)::text, current_setting('synchronous_commit') <> 'off',
                current_setting('fsync')::bool AND current_setting('full_page_writes')::bool,
                current_setting('max_connections')::int4, current_setting('superuser_reserved_connections')::int4,
                (SELECT sum(numbackends)::int4 FROM pg_stat_database),
                pg_is_in_recovery() OR current_setting('transaction_read_only')::bool, current_user::text,
                EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
                    WHERE n.nspname = 'realm' AND c.relname = 'migration')
            FROM pg_database WHERE datname = current_database()
            """,
            Self.privileges, Self.archive,
        ])
        var columns = results[0][0].columns
        var facts = DatabaseFacts(
            versionNumber: try columns.next(), version: try columns.next(), encoding: try columns.next(),
            isSynchronous: try columns.next(), isDurable: try columns.next(), connectionsMax: try columns.next(),
            connectionsReserved: try columns.next(), connectionsUsed: try columns.next(),
            isReadOnly: try columns.next(), user: try columns.next(),
            clockAhead: .milliseconds(time.millisecondsSinceEpoch - middle), schema: 0, isUnchanged: nil,
            unreadable: [], unwritable: [])
        let isMigrated = try columns.next(Bool.self)
        for (name, mayRead) in try results[1].decode(String.self, Bool.self) {
            if mayRead { facts.unwritable.append(name) } else { facts.unreadable.append(name) }
        }
        for (seconds, isFailing, hasTimeout) in try results[2].decode(Double.self, Bool.self, Bool.self) {
            facts.archive = Archive(wait: .seconds(seconds), isFailing: isFailing, hasTimeout: hasTimeout)
        }
        guard isMigrated, !facts.unreadable.contains("realm.migration") else { return facts }
        facts.schema = try connection.run("SELECT coalesce(max(number), 0) FROM realm.migration")[0].decode(Int32.self)
        if facts.schema >= Schema.oldest {
            // `nil` if the role may not read it.
            facts.isUnchanged = try? connection.run(Lineage.isUnchanged)[0].decode(Bool.self)
            let dead: Statement = "SELECT FROM pipeline.parked WHERE is_dead LIMIT \(deadKeysMax)"
            let count = try? connection.run("SELECT count(*) FROM (\(dead)) d")[0].decode(Int64.self)
            facts.deadKeys = count ?? 0
        }
        return facts
    }

    /// Rows: those of ``Archive``; none if `archive_mode` is off.
    private static let archive: Statement = """
        SELECT \(WALArchive.waitSeconds),
            coalesce(last_failed_time > coalesce(last_archived_time, '-infinity'), false),
            current_setting('archive_timeout') <> '0'
        FROM pg_stat_archiver WHERE \(WALArchive.isOn)
        """

    /// Rows: a table for which the user lacks a privilege, and whether the user may read it.
    private static let privileges: Statement = """
        SELECT p.name, p.may_read FROM (
            SELECT n.nspname || '.' || c.relname AS name,
                has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT') AS may_read,
                has_table_privilege(c.oid, 'INSERT') AND has_table_privilege(c.oid, 'UPDATE')
                    AND has_table_privilege(c.oid, 'DELETE') AS may_write
            FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
            WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition
                -- Fieldpost's schemas: another program's in the same database are its own concern.
                AND n.nspname <> 'public' AND n.nspowner = (SELECT nspowner FROM pg_namespace WHERE nspname = 'realm')
        ) p
        WHERE NOT p.may_read OR NOT p.may_write AND p.name <> 'realm.migration' ORDER BY 1
        """
}
