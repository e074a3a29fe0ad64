import Foundation
import Model
import ObjectStore
import Postgres
import TestSupport
import Testing

/// The data that statements read does not depend on the planner's statistics.
@Suite(.ownThreads) struct PlanTests {
    /// One environment is large and analysed; another one grows without statistics. Each read or write of it costs a
    /// few index entries per object, in particular under its counter's lock, never the whole environment.
    @Test(arguments: [false, true]) func environmentWithoutStatisticsIsReadByKeys(isFresh: Bool) throws {
        try withRealm { connection, known, realm, conninfo in
            try connection.run("ALTER TABLE store.object SET (autovacuum_enabled = false)")
            try Self.fill(known, realm, 20_000, &connection)
            try connection.runScript("ANALYZE store.object")
            let rows = try connection.run("INSERT INTO realm.environment (name) VALUES ('new') RETURNING id")
            let environment = EnvironmentID(rawValue: try rows[0].value(0))
            try Self.fill(environment, realm, 8_000, &connection)
            var ids: [UUID] = []
            for row in try connection.run(
                "SELECT id FROM realm.object WHERE environment_id = \(environment.rawValue) ORDER BY id LIMIT 2000")
            {
                ids.append(try row.value(0))
            }
            // Report this connection's statistics now instead of at its end.
            _ = try Self.entriesRead(&connection)
            var keys = ids.map { ObjectKey(realm: realm, kind: .timeEntry, id: $0) }[...]
            // After five executions a prepared statement may get a generic plan.
            for round in 0..<12 {
                if isFresh { connection = try Connection(conninfo) }
                let some = Array(keys.prefix(60))
                keys = keys.dropFirst(60)
                let before = try Self.entriesRead(&connection)
                let objects = try RealmObject.byKey(connection.run(RealmObject.load(some, in: environment)))
                #expect(objects.count == 60)
                var batch = WriteBatch(environment: environment)
                for (index, key) in some.enumerated() {
                    let object = try #require(objects[key])
                    batch.expect(key, at: object.position, decision: index)
                    switch index % 3 {
                    case 0: try batch.patch(object, CanonicalJSON(#"{"round":\#(round)}"#), decision: index)
                    case 1: batch.delete(key, decision: index)
                    default: batch.put(key, try CanonicalJSON(#"{"put":\#(round)}"#), decision: index)
                    }
                }
                let outcome = try batch.commit(on: &connection)
                #expect(outcome.conflicts.isEmpty && outcome.positions.count == 60)
                let read = try Self.entriesRead(&connection) - before
                #expect(read < 60 * 8, "round \(round)")
            }
        }
    }

    /// The state of a whole environment is read in pages, each of which reads its own objects and a few entries per
    /// requested realm and kind: no keys before its start, and no other kinds.
    @Test(arguments: [false, true]) func pageOfAllRealmsReadsOnlyItsKeys(isFresh: Bool) throws {
        try withRealm { connection, known, large, conninfo in
            try connection.run("ALTER TABLE store.object SET (autovacuum_enabled = false)")
            try Self.fill(known, large, 20_000, &connection)
            try connection.runScript("ANALYZE store.object")
            let rows = try connection.run("INSERT INTO realm.environment (name) VALUES ('new') RETURNING id")
            let environment = EnvironmentID(rawValue: try rows[0].value(0))
            var directory = RealmDirectory()
            for _ in 0..<100 {
                let realm = try directory.id(of: .team(UUID()), in: environment, create: true, on: &connection) ?? 0
                try Self.fill(environment, realm, 2, &connection)
            }
            let realm = try directory.id(of: .common, in: environment, create: true, on: &connection) ?? 0
            try Self.fill(environment, realm, 5_000, &connection)
            try connection.run(
                """
                INSERT INTO store.object
                    (environment_id, realm_id, kind, id, position, source_position, edit_position, deleted, fields)
                SELECT environment_id, realm_id, \(Kind.membership), id, position, -1, 0, false, '{}' FROM store.object
                WHERE environment_id = \(environment.rawValue)
                """)
            _ = try Self.entriesRead(&connection)
            var (key, keys): (Cursor.Key?, Set<String>) = (nil, [])
            for _ in 0..<100 {
                if isFresh { connection = try Connection(conninfo) }
                let before = try Self.entriesRead(&connection)
                let page = try connection.run(
                    Feed.page(
                        in: environment, after: key, kinds: [.fieldTask, .timeEntry, .user], unchangedSince: 10_000,
                        realmCountMax: 20, countMax: 200))
                #expect(try Self.entriesRead(&connection) - before <= 260)
                for row in page {
                    let realm: Int32? = try row.optional(0)
                    if let kind = try row.optional(2, as: Kind.self) {
                        let next = Cursor.Key(realm: realm, kind: kind, id: try row.value(3))
                        (key, _) = (next, keys.insert("\(next)"))
                    } else if page.count <= 200 {
                        key = realm.map { Cursor.Key(firstOf: $0 + 1) }
                    }
                }
                if key == nil { break }
            }
            #expect(key == nil && keys.count == 5_200)
        }
    }

    /// Writes objects as an initialization does.
    private static func fill(
        _ environment: EnvironmentID, _ realm: Int32, _ count: Int64, _ connection: inout Connection
    ) throws {
        try connection.run([
            "UPDATE realm.environment SET position = \(count) WHERE id = \(environment.rawValue)",
            """
            INSERT INTO store.object
                (environment_id, realm_id, kind, id, position, source_position, edit_position, deleted, fields)
            SELECT \(environment.rawValue), \(realm), \(Kind.timeEntry), gen_random_uuid(), n, -1, 0, false, '{"a": 1}'
            FROM generate_series(1, \(count)) n
            """,
        ])
    }

    /// Returns the number of entries of the objects' index read until now.
    private static func entriesRead(_ connection: inout Connection) throws -> Int64 {
        try connection.run("SELECT pg_stat_force_next_flush()")
        return try connection.run("SELECT idx_tup_read FROM pg_stat_user_indexes WHERE indexrelname = 'object_pkey'")[0]
            .value(0)
    }
}
