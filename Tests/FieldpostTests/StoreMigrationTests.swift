import Essentials
import Foundation
import Model
import ObjectStore
import Postgres
import Synchronization
import TestSupport
import Testing

@testable import Fieldpost

/// The migration from schema 15, with `jsonb` fields and text kinds, to 18: while the earlier release writes, and then
/// both.
@Suite(.ownThreads) struct StoreMigrationTests {
    private static let schema = projectFolder.appendingPathComponent("deploy/schema").path

    /// Creates a database of the earlier release, with `count` objects in each of two environments.
    private func makeDatabase(_ count: Int64) throws -> String {
        let conninfo = try TestServer.shared.makeDatabase()
        var connection = try Connection(conninfo)
        _ = try Migration.run(Array(try SchemaFile.read(Self.schema).prefix(15)), on: &connection)
        try connection.runScript(
            """
            INSERT INTO realm.environment (id, name, position) VALUES (1, 'acme', \(count)), (2, 'other', \(count));
            INSERT INTO realm.realm (environment_id, id, path)
            SELECT e, r, '/users/' || r || '@example.com' FROM generate_series(1, 2) e, generate_series(1, 20) r;
            INSERT INTO realm.object
            SELECT e, 1 + n % 20, (ARRAY['TimeEntry', 'User', 'Share', 'TimeEntryStatus'])[1 + n % 4],
                md5(e || '/' || n)::uuid, n, 0, 0, n % 7 = 0,
                CASE WHEN n % 7 > 0 THEN jsonb_build_object('text', 'entry ' || n, 'n', n / 8.0, 'é', ARRAY[n]) END
            FROM generate_series(1, 2) e, generate_series(1, \(count)) n;
            INSERT INTO realm.change (environment_id, position, realm_id, kind, id, traceparent)
            SELECT environment_id, position, realm_id, kind, id, '00-' || position FROM realm.object;
            """)
        return conninfo
    }

    /// One write or deletion as the earlier release does it.
    private static func writeAsBefore(_ random: inout SplitMix64, _ connection: inout Connection) throws {
        let (environment, realm) = (Int32.random(in: 1...2, using: &random), Int32.random(in: 1...20, using: &random))
        let number = Int64.random(in: 1...500, using: &random)
        if Int.random(in: 0..<6, using: &random) == 0 {
            try connection.run([
                """
                DELETE FROM realm.object WHERE environment_id = \(environment) AND deleted AND position <= \(number)
                """,
                "DELETE FROM realm.change WHERE environment_id = \(environment) AND position <= \(number)",
            ])
            return
        }
        let fields: JSONBytes? =
            Int.random(in: 0..<4, using: &random) == 0 ? nil : JSONBytes(#"{"text":"\#(random.next())","a":1e2}"#)
        try connection.run([
            "UPDATE realm.environment SET position = position + 1 WHERE id = \(environment)",
            """
            WITH w AS (
                INSERT INTO realm.object AS o
                SELECT id, \(realm), 'TimeEntry', md5(id || '/' || \(number))::uuid, position, 0, position,
                    \(fields == nil), \(fields)
                FROM realm.environment WHERE id = \(environment)
                ON CONFLICT (environment_id, realm_id, kind, id) DO UPDATE SET position = excluded.position,
                    edit_position = excluded.edit_position, deleted = excluded.deleted, fields = excluded.fields
                RETURNING *
            )
            INSERT INTO realm.change (environment_id, position, realm_id, kind, id)
            SELECT environment_id, position, realm_id, kind, id FROM w
            """,
        ])
    }

    /// One write as this release does it.
    private static func write(_ random: inout SplitMix64, _ connection: inout Connection) throws {
        let environment = EnvironmentID(rawValue: Int32.random(in: 1...2, using: &random))
        var batch = WriteBatch(environment: environment)
        let key = ObjectKey(
            realm: Int32.random(in: 1...20, using: &random), kind: .timeEntry,
            id: try connection.run("SELECT md5(\(String(random.next() % 500)))::uuid")[0].decode(UUID.self))
        if Int.random(in: 0..<4, using: &random) == 0 {
            batch.delete(key, decision: 0, isEdit: true)
        } else {
            batch.put(key, try CanonicalJSON(#"{"text":"\#(random.next())"}"#), decision: 0, isEdit: true)
        }
        _ = try batch.commit(on: &connection)
    }

    /// The number of rows that differ between the two forms.
    private func difference(_ connection: inout Connection) throws -> Int {
        let objects = try connection.run(
            """
            SELECT FROM (
                SELECT environment_id, realm_id, kind, id, position, source_position, edit_position, deleted,
                    fields::text AS fields
                FROM realm.object
            ) a FULL JOIN (
                SELECT o.*, k.name FROM store.object o LEFT JOIN realm.kind k ON k.number = o.kind
            ) b ON (a.environment_id, a.realm_id, a.kind, a.id) = (b.environment_id, b.realm_id, b.name, b.id)
            WHERE (a.position, a.source_position, a.edit_position, a.deleted, a.fields)
                IS DISTINCT FROM (b.position, b.source_position, b.edit_position, b.deleted, b.fields)
            """)
        let changes = try connection.run(
            """
            SELECT FROM realm.change a FULL JOIN (
                SELECT c.*, k.name FROM store.change c LEFT JOIN realm.kind k ON k.number = c.kind
            ) b ON (a.environment_id, a.position) = (b.environment_id, b.position)
            WHERE (a.realm_id, a.kind, a.id, a.traceparent, a.changed_at)
                IS DISTINCT FROM (b.realm_id, b.name, b.id, b.traceparent, b.changed_at)
            """)
        return objects.count + changes.count
    }

    /// Copies one step, and retries as a migration does: its session has a short lock timeout, and on a busy machine a
    /// writer holds its locks for longer.
    private func copySome(_ connection: inout Connection) throws {
        while true {
            do {
                try connection.run("SELECT * FROM store.copy_some()")
                return
            } catch {
                guard error.isLocked else { throw error }
            }
        }
    }

    @Test(arguments: Seeds.random(2, for: "migration of the store"))
    func bothReleasesWriteDuringMigration(seed: UInt64) throws {
        let conninfo = try makeDatabase(4_000)
        let isOver = Atomic(false)
        let written = Atomic(0)
        let failures = Mutex<[String]>([])
        let before = Thread {
            do {
                var random = SplitMix64(seed: seed)
                var connection = try Connection(conninfo)
                while !isOver.load(ordering: .relaxed) {
                    do {
                        try Self.writeAsBefore(&random, &connection)
                        written.add(1, ordering: .relaxed)
                    } catch let error as PostgresError where error.sqlState == "40P01" {
                        // On a busy machine, a writer that waits for a trigger's creation for a second is aborted. A
                        // service repeats its transaction.
                    }
                }
            } catch {
                failures.withLock { $0.append("\(error)") }
            }
            written.add(1_000_000, ordering: .relaxed)
        }
        before.start()
        var connection = try Connection(conninfo)
        // A migration that was interrupted after some steps resumes.
        _ = try Migration.run(Array(try SchemaFile.read(Self.schema).prefix(16)), on: &connection)
        for _ in 0..<2 { try copySome(&connection) }
        var steps = 0
        let files = try SchemaFile.read(Self.schema)
        let applied = try Migration.run(files, on: &connection) { progress, isLast in
            steps = progress.count
            #expect(progress.done <= progress.total)
        }
        #expect(applied.count == Int(Schema.oldest))
        try Schema.check(on: &connection)
        // A migration's session has a short lock timeout; writers have a longer one.
        connection = try Connection(conninfo)
        var random = SplitMix64(seed: seed &+ 1)
        while written.load(ordering: .relaxed) < 400 || steps == 0 {
            try Self.write(&random, &connection)
            if !failures.withLock({ $0.isEmpty }) { break }
            steps = max(steps, 1)
        }
        isOver.store(true, ordering: .relaxed)
        while written.load(ordering: .relaxed) < 1_000_000 { try connection.run("SELECT pg_sleep(0.01)") }
        #expect(failures.withLock { $0 } == [])
        #expect(try difference(&connection) == 0)

        // Then one form is enough.
        let objects = try connection.run("SELECT count(*) FROM realm.object")[0].decode(Int64.self)
        #expect(try Migration.run(files, finishes: true, on: &connection).count == Int(Schema.version))
        #expect(try connection.run("SELECT count(*) FROM realm.object")[0].decode(Int64.self) == objects)
        try Self.write(&random, &connection)
        let triggers = try connection.run(
            "SELECT FROM pg_trigger WHERE tgrelid = 'store.object'::regclass AND tgname IN ('give', 'take')")
        #expect(triggers.count == 0)
    }

    /// The copy waits for uncommitted writes, which would be missing in one of the two forms.
    @Test func copyWaitsForWriters() throws {
        let conninfo = try makeDatabase(10)
        var connection = try Connection(conninfo)
        _ = try Migration.run(Array(try SchemaFile.read(Self.schema).prefix(16)), on: &connection)
        var writer = try Connection(conninfo, limits: .openTransaction)
        try writer.runScript("BEGIN; UPDATE realm.environment SET position = position + 1 WHERE id = 1")
        try connection.run("SET lock_timeout = '100ms'")
        let error = #expect(throws: PostgresError.self) { try connection.run("SELECT * FROM store.copy_some()") }
        #expect(error?.isLocked == true)
        try writer.runScript("COMMIT")
        #expect(try connection.run("SELECT * FROM store.copy_some()").count == 1)
    }

    /// ANALYZE runs before locks that writers need: it takes seconds for millions of rows.
    @Test func analyzeDoesNotBlockWriters() throws {
        let conninfo = try makeDatabase(10)
        var connection = try Connection(conninfo)
        let files = try SchemaFile.read(Self.schema)
        _ = try Migration.run(Array(files.prefix(16)), on: &connection)
        var vacuum = try Connection(conninfo, limits: .openTransaction)
        try vacuum.runScript("BEGIN; LOCK TABLE store.change IN SHARE UPDATE EXCLUSIVE MODE")
        let outcome = Mutex<Result<Int, any Error>?>(nil)
        Thread {
            let result = Result {
                var connection = try Connection(conninfo)
                return try Migration.run(files, on: &connection).count
            }
            outcome.withLock { $0 = result }
        }.start()
        // Without the vacuum's lock ANALYZE would be running.
        while try connection.run(
            """
            SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
                AND query LIKE '%ANALYZE store.object%'
            """
        ).count == 0 {
            if outcome.withLock({ $0 }) != nil { break }
            try connection.run("SELECT pg_sleep(0.01)")
        }
        var random = SplitMix64(seed: 1)
        try connection.run("SET lock_timeout = '2s'")
        for _ in 0..<20 { try Self.writeAsBefore(&random, &connection) }
        try vacuum.runScript("COMMIT")
        while outcome.withLock({ $0 == nil }) { try connection.run("SELECT pg_sleep(0.01)") }
        #expect(try outcome.withLock { $0 }?.get() == Int(Schema.oldest))
        #expect(try difference(&connection) == 0)
    }

    /// A service of the earlier release has no privileges on later tables.
    @Test func serviceRoleNeedsNoPrivilegesOnNewTables() throws {
        let conninfo = try makeDatabase(10)
        var connection = try Connection(conninfo)
        _ = try Migration.run(Array(try SchemaFile.read(Self.schema).prefix(16)), on: &connection)
        let role = "service_\(UInt32.random(in: 0 ... .max))"
        try connection.runScript(
            """
            CREATE ROLE \(role);
            GRANT USAGE ON SCHEMA realm TO \(role);
            GRANT SELECT, INSERT, UPDATE, DELETE ON realm.object, realm.change, realm.environment TO \(role);
            SET ROLE \(role)
            """)
        var random = SplitMix64(seed: 1)
        for _ in 0..<20 { try Self.writeAsBefore(&random, &connection) }
        try connection.runScript("RESET ROLE")
        #expect(try connection.run("SELECT FROM store.object").count > 0)
        try connection.runScript("DROP OWNED BY \(role); DROP ROLE \(role)")
    }

    /// A migration without --finish reports the remaining files.
    @Test func pendingFinishIsReported() throws {
        let conninfo = try makeDatabase(10)
        let environment = ["FIELDPOST_DATABASE_URL": conninfo]
        let first = try fieldpost("migrate", "--schema", Self.schema, environment: environment)
        #expect(first.status == 0)
        #expect(first.errors.contains("017-copied.sql: 40 of about"))
        #expect(
            first.errors.contains(
                "018-one-store.sql waits until no service of the release before is left; then run: "
                    + "fieldpost migrate --finish"))
        let second = try fieldpost("migrate", "--finish", "--schema", Self.schema, environment: environment)
        #expect(second.status == 0 && second.errors == "")
    }

    /// The numbers of kinds are stored by each migration, and never change.
    @Test func kindsKeepTheirNumbers() throws {
        let conninfo = try makeDatabase(0)
        var connection = try Connection(conninfo)
        let files = try SchemaFile.read(Self.schema)
        _ = try Migration.run(files, finishes: true, on: &connection)
        let rows = try connection.run("SELECT number, name FROM realm.kind").decode(Int16.self, String.self)
        let stored = Dictionary(uniqueKeysWithValues: rows.map { ($1, $0) })
        for kind in Kind.allCases {
            #expect(stored[kind.rawValue] == kind.number)
            #expect(Kind(number: kind.number) == kind)
        }
        let first = Kind.allCases.filter { $0.number <= 16 }.sorted { $0.rawValue < $1.rawValue }
        #expect(first.map(\.number) == Array(1...16))
        #expect(Kind(number: 0) == nil && Kind(number: Kind.numberMax + 1) == nil)
        try connection.run("DELETE FROM realm.kind WHERE name = 'User'")
        _ = try Migration.run(files, on: &connection)
        #expect(try connection.run("SELECT FROM realm.kind WHERE name = 'User' AND number = 16").count == 1)
    }
}
