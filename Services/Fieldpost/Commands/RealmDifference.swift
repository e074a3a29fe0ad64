import Commands
import Essentials
import FoundationEssentials
import Model
import Operations
import Postgres
import Realms

/// An object that is not the same in two realms.
struct RealmDifference: Encodable {
    enum State: String, Encodable {
        case onlyInFirst = "only in the first"
        case onlyInSecond = "only in the second"
        case differs = "differs"
    }

    let state: State
    let kind: String
    let id: UUID
    /// The names of the fields that differ.
    let fields: [String]

    /// Compares two realms, however large: what is read at a time is bounded by the database's cursor of one join.
    ///
    /// - Returns: The first differences by kind and id.
    static func list(
        _ first: RealmContentReader, _ second: RealmContentReader, countMax: Int, on connection: inout Connection
    ) throws -> [RealmDifference] {
        let environment = first.environment.rawValue
        let rows = try connection.run(
            """
            SELECT coalesce(a.kind, b.kind), coalesce(a.id, b.id), a.fields, b.fields
            FROM (
                SELECT kind, id, fields FROM store.object
                WHERE environment_id = \(environment) AND realm_id = \(first.realm) AND NOT deleted
            ) a FULL JOIN (
                SELECT kind, id, fields FROM store.object
                WHERE environment_id = \(environment) AND realm_id = \(second.realm) AND NOT deleted
            ) b ON a.kind = b.kind AND a.id = b.id
            WHERE a.fields IS DISTINCT FROM b.fields
            ORDER BY 1, 2 LIMIT \(Int64(countMax))
            """)
        return try rows.decode(Int16.self, UUID.self, CanonicalJSON?.self, CanonicalJSON?.self).map {
            number, id, a, b in
            let kind = Kind(number: number)?.rawValue ?? "kind \(number)"
            guard let a else { return RealmDifference(state: .onlyInSecond, kind: kind, id: id, fields: []) }
            guard let b else { return RealmDifference(state: .onlyInFirst, kind: kind, id: id, fields: []) }
            return RealmDifference(state: .differs, kind: kind, id: id, fields: try names(a, b))
        }
    }

    private static func names(_ first: CanonicalJSON, _ second: CanonicalJSON) throws -> [String] {
        let (first, second) = (try JSONObject(first.bytes), try JSONObject(second.bytes))
        let names = Set((first.members + second.members).map(\.key))
        return names.filter { first.value(of: $0) != second.value(of: $0) }.sorted()
    }

    static func table(_ rows: [RealmDifference], _ first: String, _ second: String) -> Table {
        var table = Table(
            [("", .left), ("KIND", .left), ("ID", .left), ("FIELDS", .left)],
            empty: "\(first) and \(second) have the same objects")
        for row in rows {
            table.add([row.state.rawValue, row.kind, row.id.text, row.fields.joined(separator: ", ")])
        }
        return table
    }
}
