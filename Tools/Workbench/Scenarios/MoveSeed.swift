import Essentials
import Model
import ObjectStore
import Postgres

/// Additional content of an environment: objects of inactive people, and responses to former devices.
struct MoveSeed: Sendable {
    let environment: EnvironmentID
    let objectCount: Int
    let responseCount: Int

    /// The schema file of the environment: the kind of one of five objects.
    static let kinds = """
        {"kinds": {"Form": {"realms": ["user"], "topic": "forms", "properties": {"text": {"type": "string"}}}}}
        """
    private static let kind = "Form"
    /// The topic's name in the schema file.
    static let topic = "forms"

    /// Takes the number of the first own kind, so that the environment's kind gets another one.
    static let takeNumber: Statement = """
        INSERT INTO realm.kind (number, name) VALUES (\(OwnKind.numbers.lowerBound), 'Elsewhere')
        """

    /// Counts the objects of the kind. Rows: number of objects, also deleted ones.
    static func formCount(in environment: EnvironmentID) -> Statement {
        """
        SELECT count(*) FROM store.object
        WHERE environment_id = \(environment.rawValue) AND kind = (SELECT number FROM realm.kind WHERE name = \(kind))
        """
    }

    /// The paths of its realms, as a pattern of SQL's `LIKE`.
    static let realms = "/users/quiet%"
    private static let realmCountMax = 2_000
    /// Objects per transaction.
    private static let pageCountMax = 50_000
    /// Responses per client.
    private static let responsesPerClient = 1_000

    /// Writes the content at new positions, without a change log, because no device reads it.
    func write(on connection: inout Connection) throws {
        var directory = RealmDirectory()
        let count = min(Self.realmCountMax, max(1, objectCount / 100))
        let paths = try (0..<count).map { try RealmPath.user("quiet\($0)@move.example") }
        let realms = try directory.ids(of: paths, in: environment, create: true, on: &connection).values.sorted()
        for first in stride(from: 0, to: objectCount, by: Self.pageCountMax) {
            try writeObjects(first, min(Self.pageCountMax, objectCount - first), in: realms, on: &connection)
        }
        try writeResponses(on: &connection)
        try connection.runScript("ANALYZE store.object; ANALYZE device.mutation")
    }

    /// One of five objects is an entry, and one of an own kind, which are published; the others are lines of status
    /// logs. One of ten is deleted.
    private func writeObjects(
        _ first: Int, _ count: Int, in realms: [Int32], on connection: inout Connection
    ) throws {
        let entry = try CanonicalJSON(
            """
            {"text":"NUMBER","status":"draft","timeType":"duration","entryDate":"2015-03-30","durationSeconds":5400,\
            "reporting":[{"node":"7b8b6a0e-8f43-5c0f-9f4c-2b2c7d9d1b11",\
            "context":"0d5a3c53-0f5e-5a55-8d53-3b8c9b0f0a01"},\
            {"node":"c1b1f7f4-3e3b-5a51-a8a4-1f4f0c2d6e22","context":"5f0f5cf0-5b0e-5b0e-9a90-6a1e7d0b0b02"}],\
            "createdOn":"2015-03-30","submitRequested":false}
            """)
        let line = try CanonicalJSON(
            encoding: TimeEntryStatus(
                entry: StableID.uuid("quiet"), status: .draft, timestamp: Timestamp(millisecondsSinceEpoch: 0),
                message: "NUMBER " + String(repeating: "A term. ", count: 40)))
        let environment = environment.rawValue
        try connection.transaction { transaction in
            let last = try transaction.run(
                """
                UPDATE realm.environment SET position = position + \(Int64(count)) WHERE id = \(environment)
                RETURNING position
                """)[0].decode(Int64.self)
            try transaction.run(
                """
                INSERT INTO store.object (environment_id, realm_id, kind, deleted, id, position, source_position,
                    edit_position, fields)
                SELECT \(environment), r.ids[1 + n % cardinality(r.ids)],
                    CASE n % 5 WHEN 0 THEN \(Kind.timeEntry.number) WHEN 1 THEN f.number
                        ELSE \(Kind.timeEntryStatus.number) END,
                    n % 10 = 9,
                    gen_random_uuid(), \(last - Int64(count)) + n, 0, \(last - Int64(count)) + n,
                    CASE WHEN n % 10 = 9 THEN NULL ELSE replace(
                        CASE n % 5 WHEN 0 THEN \(String(decoding: entry.bytes, as: UTF8.self))
                            WHEN 1 THEN '{"text": "NUMBER"}' ELSE \(String(decoding: line.bytes, as: UTF8.self)) END,
                        'NUMBER', (\(Int64(first)) + n)::text) END
                FROM generate_series(1, \(Int64(count))) AS n, (SELECT \(realms)::int[] AS ids) AS r,
                    (SELECT number FROM realm.kind WHERE name = \(Self.kind)) AS f
                """)
        }
    }

    private func writeResponses(on connection: inout Connection) throws {
        let environment = environment.rawValue
        let clients = max(1, responseCount / Self.responsesPerClient)
        try connection.run([
            """
            INSERT INTO device.client (environment_id, person_id, client_id, next_sequence)
            SELECT \(environment), 0, gen_random_uuid(), \(Int64(Self.responsesPerClient)) + 1
            FROM generate_series(1, \(Int64(clients)))
            """,
            """
            INSERT INTO device.mutation (environment_id, person_id, client_id, sequence, position)
            SELECT environment_id, person_id, client_id, n, n
            FROM device.client, generate_series(1, \(Int64(min(responseCount, Self.responsesPerClient)))) AS n
            WHERE environment_id = \(environment) AND person_id = 0
            """,
        ])
    }
}
