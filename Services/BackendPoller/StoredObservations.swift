import Essentials
import FoundationEssentials
import Model
import ObjectStore
import Postgres

/// What was seen of many people's records: those of some days, and some by their ids.
struct StoredObservations {
    /// By realm and entry, tombstones left out. One that does not decode is written anew.
    private(set) var records: [Int32: [UUID: SeenRecord]] = [:]
    /// Tombstones too.
    private(set) var positions: [ObjectKey: Int64] = [:]

    /// Realms that are looked through in one statement.
    private static let realmCountMax = 500

    init(
        _ realms: [Int32], on days: ClosedRange<Day>, and found: [ObjectKey], in environment: EnvironmentID,
        _ decoder: JSONDecoder, _ connection: inout Connection
    ) throws {
        var rest = realms[...]
        while !rest.isEmpty {
            let part = Array(rest.prefix(Self.realmCountMax))
            rest = rest.dropFirst(Self.realmCountMax)
            try add(connection.run(Self.seen(part, on: days, in: environment)), decoder)
        }
        let missing = found.filter { positions[$0] == nil }
        if !missing.isEmpty { try add(connection.run(RealmObject.load(missing, in: environment)), decoder) }
    }

    private mutating func add(_ rows: Rows, _ decoder: JSONDecoder) throws {
        for (key, object) in try RealmObject.byKey(rows) {
            positions[key] = object.position
            records[key.realm, default: [:]][key.id] = try? object.seenRecord(by: decoder)
        }
    }

    /// Days as text are in their order. Rows: as `RealmObject` reads them.
    private static func seen(
        _ realms: [Int32], on days: ClosedRange<Day>, in environment: EnvironmentID
    ) -> Statement {
        """
        SELECT o.realm_id, o.kind, o.id, o.position, o.edit_position, o.fields
        FROM unnest(\(realms)) AS r(id) CROSS JOIN LATERAL (
            SELECT * FROM store.object
            WHERE environment_id = \(environment.rawValue) AND realm_id = r.id
                AND kind = \(Kind.seenRecord) AND NOT deleted
                AND (fields::json->>'day') COLLATE "C"
                    BETWEEN \(days.lowerBound.description) AND \(days.upperBound.description)
            OFFSET 0
        ) o
        """
    }
}
