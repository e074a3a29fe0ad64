import Essentials
import FoundationEssentials
import Model
import ObjectStore
import Postgres

/// The stored observations of many people's records: those of some days, and some by id.
struct StoredObservations {
    /// By realm and entry, without tombstones. An undecodable one is omitted, and so written again.
    private(set) var records: [Int32: [UUID: SeenRecord]] = [:]
    /// Positions including those of tombstones.
    private(set) var positions: [ObjectKey: Int64] = [:]

    /// Maximum number of realms per statement.
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
            records[key.realm, default: [:]][key.id] = try? object.decodedDirectly(as: SeenRecord.self, by: decoder)
        }
    }

    /// Days are compared as text, which preserves their order. Rows: as decoded by `RealmObject`.
    private static func seen(_ realms: [Int32], on days: ClosedRange<Day>, in environment: EnvironmentID) -> Statement {
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

extension RealmObject {
    /// Decodes the object as `decoded(as:by:)` does, in less time: with `JSONDecoder`, decoding took half the time of
    /// an uncached comparison. JSON that the direct decoder rejects is decoded by `decoder`, which reports errors.
    func decodedDirectly<Fields: Decodable>(
        as type: Fields.Type, by decoder: JSONDecoder
    ) throws(StoredJSONError) -> Fields? {
        if let fields, let object = try? JSONObject(fields.bytes), let read = try? object.decoded(as: type) {
            return read
        }
        return try decoded(as: type, by: decoder)
    }
}
