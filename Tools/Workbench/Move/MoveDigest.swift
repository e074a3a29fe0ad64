import FoundationEssentials
import Model
import ObjectStore
import Postgres
import TenantMigration

/// How many rows of a table there are, and a sum over what is in them that does not ask for their order.
struct MoveDigest: Equatable, Sendable, CustomStringConvertible {
    let count: Int64
    let sum: String

    var description: String { "\(count) rows, sum \(sum)" }

    /// Where the rows of an environment are.
    enum Place: Sendable {
        /// In their tables, at the old place.
        case tables
        /// As they arrived, at the new place: in their tables, or as lines that wait.
        case arrived
    }

    /// The rows of all tables but objects, by their tables' names.
    static func ofOthers(
        _ environment: EnvironmentID, at place: Place, on connection: inout Connection
    ) throws -> [String: MoveDigest] {
        var digests: [String: MoveDigest] = [:]
        for table in MovedTable.all where table.name != MovedTable.objects.name {
            let rows: Statement =
                switch (place, table.arrival) {
                case (.tables, _), (.arrived, .asTheyCome):
                    """
                    SELECT (to_jsonb(t) - 'environment_id')::text AS line
                    FROM \(Statement(stringLiteral: table.name)) t WHERE environment_id = \(environment.rawValue)
                    """
                case (.arrived, .whenItBegins):
                    """
                    SELECT l.line FROM realm.move_part p, unnest(string_to_array(p.lines, chr(10))) AS l (line)
                    WHERE p.environment_id = \(environment.rawValue) AND p.table_name = \(table.name)
                    """
                }
            digests[table.name] = try digest(rows, on: &connection)
        }
        return digests
    }

    /// Objects that are as they were moved: at the new place none has been written since, by its position.
    static func ofObjects(
        _ environment: EnvironmentID, upTo position: Int64, in transaction: inout Transaction
    ) throws -> MoveDigest {
        try read(
            transaction.run(
                sum(
                    """
                    SELECT (to_jsonb(t) - 'environment_id')::text AS line FROM store.object t
                    WHERE environment_id = \(environment.rawValue) AND position <= \(position)
                    """)))
    }

    /// The objects of the old place but for some.
    static func ofObjects(
        _ environment: EnvironmentID, without objects: [ObjectKey], on connection: inout Connection
    ) throws -> MoveDigest {
        try digest(
            """
            SELECT (to_jsonb(t) - 'environment_id')::text AS line FROM store.object t
            WHERE environment_id = \(environment.rawValue) AND (realm_id, kind, id) NOT IN (
                SELECT * FROM unnest(\(objects.map(\.realm))::int[], \(objects.map { Int32($0.kind.number) })::int[],
                    \(objects.map(\.id))::uuid[]))
            """, on: &connection)
    }

    /// What was written at the new place after a position.
    static func written(
        after position: Int64, in environment: EnvironmentID, in transaction: inout Transaction
    ) throws -> [ObjectKey] {
        try transaction.run(
            """
            SELECT realm_id, kind::int, id FROM store.object
            WHERE environment_id = \(environment.rawValue) AND position > \(position)
            """
        ).decode(Int32.self, Int32.self, UUID.self).compactMap { realm, number, id in
            Kind.allCases.first { Int32($0.number) == number }.map { ObjectKey(realm: realm, kind: $0, id: id) }
        }
    }

    private static func digest(_ rows: Statement, on connection: inout Connection) throws -> MoveDigest {
        try read(connection.run(sum(rows)))
    }

    private static func sum(_ rows: Statement) -> Statement {
        "SELECT count(*), coalesce(sum(hashtextextended(line, 0)::numeric), 0)::text FROM (\(rows)) AS rows"
    }

    private static func read(_ rows: Rows) throws -> MoveDigest {
        let (count, sum) = try rows[0].decode(Int64.self, String.self)
        return MoveDigest(count: count, sum: sum)
    }
}
