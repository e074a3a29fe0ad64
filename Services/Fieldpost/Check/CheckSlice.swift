import Essentials
import FoundationEssentials
import Model
import Postgres

/// A slice of an environment that one statement checks, so that no statement holds a snapshot for long: a range of ids,
/// of positions, or every n-th realm.
struct CheckSlice {
    let environment: EnvironmentID
    let index: Int
    let count: Int
    /// Maximum number of inconsistencies that one statement returns.
    let countMax: Int

    /// Approximate number of objects in a slice, if ids are random.
    private static let objectCountAim = 20_000
    private static let slicesMax = 1_024

    /// Returns the number of slices for a database of this size.
    static func count(objects: Int) -> Int { min(max(1, objects / objectCountAim), slicesMax) }

    /// The most significant 32 bits of the first id of a slice.
    private func firstBits(_ index: Int) -> UInt64 { UInt64(index) << 32 / UInt64(count) }

    private static func id(_ first: UInt32, filledWith byte: UInt8) -> UUID {
        let head = (0..<4).map { UInt8(truncatingIfNeeded: first >> UInt32(24 - 8 * $0)) }
        let b = byte
        return UUID(uuid: (head[0], head[1], head[2], head[3], b, b, b, b, b, b, b, b, b, b, b, b))
    }

    /// The slice's ids.
    var ids: ClosedRange<UUID> {
        Self.id(UInt32(firstBits(index)), filledWith: 0)...Self.id(UInt32(firstBits(index + 1) - 1), filledWith: 255)
    }

    /// Whether a column's id is in the slice.
    func has(_ column: Statement) -> Statement { "\(column) BETWEEN \(ids.lowerBound) AND \(ids.upperBound)" }

    /// Whether a column's number of a realm is in the slice.
    func hasRealm(_ column: Statement) -> Statement { "mod(\(column), \(Int32(count))) = \(Int32(index))" }

    /// Joins the existing objects of a realm and kind that are in the slice, as `o`.
    func objects(_ kind: Kind, in realm: Statement) -> Statement { "\(objects([kind], in: realm))" }

    func objects(_ kinds: [Kind], in realm: Statement) -> Statement {
        """
        CROSS JOIN unnest(\(kinds)) AS k(number) CROSS JOIN LATERAL (
            SELECT * FROM store.object
            WHERE environment_id = \(environment.rawValue) AND realm_id = \(realm) AND kind = k.number
                AND \(has("id")) AND NOT deleted
            OFFSET 0
        ) o
        """
    }

    /// Whether an object exists, by its complete key.
    func exists(_ kind: Kind, _ id: Statement, in realm: Statement) -> Statement {
        """
        EXISTS (SELECT FROM store.object WHERE environment_id = \(environment.rawValue) AND realm_id = \(realm)
            AND kind = \(kind) AND id = \(id) AND NOT deleted)
        """
    }

    /// Whether an object is a tombstone, by its complete key; null if there is no row.
    func isDeleted(_ kind: Kind, _ id: Statement, in realm: Statement) -> Statement {
        """
        (SELECT deleted FROM store.object WHERE environment_id = \(environment.rawValue) AND realm_id = \(realm)
            AND kind = \(kind) AND id = \(id))
        """
    }

    /// The id of a realm, by its path.
    func realm(_ path: Statement) -> Statement {
        "(SELECT id FROM realm.realm WHERE environment_id = \(environment.rawValue) AND path = \(path))"
    }

    /// The id in a field; null if it has none.
    static func id(_ field: String, of fields: Statement) -> Statement {
        """
        (SELECT CASE WHEN t ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' THEN t::uuid END
        FROM (SELECT \(fields)::json->>\(field) AS t) AS field)
        """
    }

    /// The id derived from two ids, as `UUID.paired(with:)` derives it.
    static func pair(_ first: Statement, _ second: Statement) -> Statement {
        "encode(substr(uuid_send(\(first)), 1, 8) || substr(uuid_send(\(second)), 9), 'hex')::uuid"
    }
}
