import Essentials
import FoundationEssentials
import KeyedWorker
import Model
import ObjectStore
import Postgres
import TestSupport
import Testing

@testable import LocationFanOut

/// The number of index entries read for some people depends neither on the number of people nor on the planner's
/// statistics.
@Suite(.ownThreads) struct LocationPlanTests {
    @Test(arguments: [false, true]) func peopleAreReadByIndexedKeys(isFresh: Bool) throws {
        var acme = try TestEnvironment()
        let analyzed = EnvironmentID(
            rawValue: try acme.connection.run("INSERT INTO realm.environment (name) VALUES ('analyzed') RETURNING id")[
                0
            ]
            .value(0))
        for table in ["store.object", "realm.realm", "access.person"] {
            try acme.connection.runScript("ALTER TABLE \(table) SET (autovacuum_enabled = false)")
        }
        try fill(analyzed, &acme.connection)
        try acme.connection.runScript("ANALYZE store.object; ANALYZE realm.realm; ANALYZE access.person")
        try fill(acme.id, &acme.connection)
        let subjects = try acme.connection.run(
            "SELECT email, object_id FROM access.person WHERE environment_id = \(acme.id.rawValue) ORDER BY email"
        ).decode(String.self, UUID.self).map { email, id in
            EventSubject(realm: try .user(email), kind: .location, id: id)
        }
        let (handler, someMax) = (LocationHandler(), 40)
        // Flushes this connection's statistics, which otherwise happens when its process ends.
        _ = try entriesRead(&acme.connection)
        // After five uses a prepared statement may get a generic plan.
        for round in 0..<9 {
            if isFresh { acme.connection = try Connection(acme.conninfo) }
            let before = try entriesRead(&acme.connection)
            var (own, batch) = (handler, WriteBatch(environment: acme.id))
            let items = subjects.dropFirst(round * someMax).prefix(someMax).map { subject in
                WorkItem<Never>(environment: acme.id, subject: subject, origin: .event, attemptCount: 0)
            }
            _ = try own.decide(items, in: acme.id, batch: &batch, on: &acme.connection)
            let outcome = try batch.commit(on: &acme.connection)
            #expect(outcome.conflicts.isEmpty && outcome.positions.count == 2 * someMax)
            let read = try entriesRead(&acme.connection) - before
            #expect(read < Int64(someMax * 30), "round \(round)")
        }
    }

    /// Adds 2,000 people with locations, spread over 100 teams.
    private func fill(_ environment: EnvironmentID, _ connection: inout Connection) throws {
        let id = environment.rawValue
        try connection.run([
            "UPDATE realm.environment SET position = 10000 WHERE id = \(id)",
            """
            INSERT INTO access.person (environment_id, email, object_id)
            SELECT \(id), 'p' || n || '@example.com', md5('p' || n)::uuid FROM generate_series(1, 2000) n
            """,
            """
            INSERT INTO realm.realm (environment_id, path)
            SELECT \(id), '/common'
            UNION ALL SELECT \(id), '/users/p' || n || '@example.com' FROM generate_series(1, 2000) n
            UNION ALL SELECT \(id), '/teams/' || md5('t' || n)::uuid FROM generate_series(1, 100) n
            """,
            """
            WITH p AS (
                SELECT n, md5('p' || n)::uuid AS id, md5('t' || (n % 100 + 1))::uuid AS team
                FROM generate_series(1, 2000) n
            ), r AS (
                SELECT id, path FROM realm.realm WHERE environment_id = \(id)
            ), o AS (
                SELECT (SELECT id FROM r WHERE path = '/common') AS realm, \(Kind.person) AS kind, id,
                    '{"name":"p"}' AS fields FROM p
                UNION ALL
                SELECT (SELECT id FROM r WHERE path = '/common'), \(Kind.membership),
                    (left(id::text, 18) || '-' || right(team::text, 17))::uuid,
                    '{"person":"' || id || '","team":"' || team || '"}' FROM p
                UNION ALL
                SELECT (SELECT id FROM r WHERE path = '/common'), \(Kind.team), team, '{"name":"t"}'
                FROM p GROUP BY team
                UNION ALL
                SELECT r.id, \(Kind.location), p.id, '{"latitude":1,"longitude":2}'
                FROM p JOIN r ON r.path = '/users/p' || p.n || '@example.com'
            )
            INSERT INTO store.object
                (environment_id, realm_id, kind, id, position, source_position, edit_position, deleted, fields)
            SELECT \(id), realm, kind, id, row_number() OVER (), 0, 0, false, fields FROM o
            """,
        ])
    }

    /// Returns the number of entries of all indexes read so far.
    private func entriesRead(_ connection: inout Connection) throws -> Int64 {
        try connection.run("SELECT pg_stat_force_next_flush()")
        return try connection.run("SELECT sum(idx_tup_read)::bigint FROM pg_stat_user_indexes")[0].value(0)
    }
}
