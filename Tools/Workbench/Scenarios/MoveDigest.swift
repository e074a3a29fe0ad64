import FoundationEssentials
import Model
import ObjectStore
import Postgres
import TenantMigration

/// The number of rows of a table, and a checksum of their content that is independent of their order.
struct MoveDigest: Equatable, Sendable, CustomStringConvertible {
    let count: Int64
    let sum: String

    var description: String { "\(count) rows, sum \(sum)" }

    /// The location of an environment's rows.
    enum Source: Sendable {
        /// The tables of the old installation.
        case tables
        /// The tables of the new installation, or lines that are not yet applied.
        case arrived
    }

    /// The rows of all tables except objects, by table.
    static func ofOthers(
        _ environment: EnvironmentID, at source: Source, on connection: inout Connection
    ) throws -> [String: MoveDigest] {
        var digests: [String: MoveDigest] = [:]
        for table in MovedTable.all where table.name != MovedTable.objects.name {
            let rows: Statement =
                switch (source, table.arrival) {
                case (.tables, _), (.arrived, .immediate):
                    """
                    SELECT \(line(table)) AS line
                    FROM \(Statement(stringLiteral: table.name)) t WHERE environment_id = \(environment.rawValue)
                    """
                case (.arrived, .atActivation):
                    """
                    SELECT l.line FROM realm.move_part p, unnest(string_to_array(p.lines, chr(10))) AS l (line)
                    WHERE p.environment_id = \(environment.rawValue) AND p.table_name = \(table.name)
                    """
                }
            digests[table.name] = try MoveDigest(connection.run(sum(rows)))
        }
        return digests
    }

    /// Objects of the new installation that have not been written since the move, by their positions.
    static func ofObjects(
        _ environment: EnvironmentID, upTo position: Int64, in transaction: inout Transaction
    ) throws -> MoveDigest {
        let rows: Statement = """
            SELECT \(line(.objects)) AS line FROM store.object t
            WHERE environment_id = \(environment.rawValue) AND position <= \(position)
            """
        return try MoveDigest(transaction.run(sum(rows)))
    }

    /// The objects of the old installation except some.
    static func ofObjects(
        _ environment: EnvironmentID, without objects: [ObjectKey], on connection: inout Connection
    ) throws -> MoveDigest {
        let rows: Statement = """
            SELECT \(line(.objects)) AS line FROM store.object t
            WHERE environment_id = \(environment.rawValue) AND (realm_id, kind, id) NOT IN (
                SELECT * FROM unnest(\(objects.map(\.realm))::int[], \(objects.map { Int32($0.kind.number) })::int[],
                    \(objects.map(\.id))::uuid[]))
            """
        return try MoveDigest(connection.run(sum(rows)))
    }

    /// The objects written at the new installation after a position.
    static func written(
        after position: Int64, in environment: EnvironmentID, in transaction: inout Transaction
    ) throws -> [ObjectKey] {
        try transaction.run(
            """
            SELECT realm_id, kind, id FROM store.object
            WHERE environment_id = \(environment.rawValue) AND position > \(position)
            """
        ).decode(Int32.self, Int16.self, UUID.self).compactMap { realm, number, id in
            Kind(number: number).map { ObjectKey(realm: realm, kind: $0, id: id) }
        }
    }

    /// A row of `t` as text, with its kind's name.
    private static func line(_ table: MovedTable) -> Statement {
        let kind: Statement =
            table.hasKindNumber
            ? "|| jsonb_build_object('kind', (SELECT k.name FROM realm.kind k WHERE k.number = t.kind))" : ""
        return "(to_jsonb(t) - 'environment_id' \(kind))::text"
    }

    private static func sum(_ rows: Statement) -> Statement {
        "SELECT count(*), coalesce(sum(hashtextextended(line, 0)::numeric), 0)::text FROM (\(rows)) AS rows"
    }

    private init(_ rows: Rows) throws {
        (count, sum) = try rows[0].decode(Int64.self, String.self)
    }
}
