import Essentials
import FoundationEssentials
import Model
import Postgres

/// A part of an environment that one statement looks at, so that none holds a snapshot for long: of ids a range, of
/// realms each so-manieth, of positions a range.
struct CheckSlice {
    let environment: EnvironmentID
    let index: Int
    let count: Int
    /// The most differences of a statement.
    let countMax: Int

    /// Objects that a slice has, about, while ids are spread as random ones are.
    private static let objectCountAim = 20_000
    private static let slicesMax = 1_024

    /// How many slices a database of this size is cut into.
    static func count(objects: Int) -> Int { min(max(1, objects / objectCountAim), slicesMax) }

    /// The first id of a slice.
    private func bound(_ index: Int) -> UInt64 { UInt64(index) << 32 / UInt64(count) }

    private static func id(_ first: UInt32, filledWith byte: UInt8) -> UUID {
        let head = (0..<4).map { UInt8(truncatingIfNeeded: first >> UInt32(24 - 8 * $0)) }
        let b = byte
        return UUID(uuid: (head[0], head[1], head[2], head[3], b, b, b, b, b, b, b, b, b, b, b, b))
    }

    /// The slice's ids.
    var ids: ClosedRange<UUID> {
        Self.id(UInt32(bound(index)), filledWith: 0)...Self.id(UInt32(bound(index + 1) - 1), filledWith: 255)
    }

    /// Whether a column's id is in the slice.
    func has(_ column: Statement) -> Statement { "\(column) BETWEEN \(ids.lowerBound) AND \(ids.upperBound)" }

    /// Whether a column's number of a realm is in the slice.
    func hasRealm(_ column: Statement) -> Statement { "mod(\(column), \(Int32(count))) = \(Int32(index))" }

    /// Joins the objects of a realm and kind that are there and in the slice, as `o`.
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

    /// Whether an object is there, by its whole key.
    func isThere(_ kind: Kind, _ id: Statement, in realm: Statement) -> Statement {
        """
        EXISTS (SELECT FROM store.object WHERE environment_id = \(environment.rawValue) AND realm_id = \(realm)
            AND kind = \(kind) AND id = \(id) AND NOT deleted)
        """
    }

    /// Whether an object is a tombstone, by its whole key; null when there is not even that.
    func isDeleted(_ kind: Kind, _ id: Statement, in realm: Statement) -> Statement {
        """
        (SELECT deleted FROM store.object WHERE environment_id = \(environment.rawValue) AND realm_id = \(realm)
            AND kind = \(kind) AND id = \(id))
        """
    }

    /// The number of a realm by its path.
    func realm(_ path: Statement) -> Statement {
        "(SELECT id FROM realm.realm WHERE environment_id = \(environment.rawValue) AND path = \(path))"
    }

    /// The id that a field holds; null where it holds none.
    static func id(_ field: String, of fields: Statement) -> Statement {
        """
        (SELECT CASE WHEN t ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' THEN t::uuid END
        FROM (SELECT \(fields)::json->>\(field) AS t) AS field)
        """
    }

    /// The id made of two, as `UUID.paired(with:)` makes it.
    static func pair(_ first: Statement, _ second: Statement) -> Statement {
        "encode(substr(uuid_send(\(first)), 1, 8) || substr(uuid_send(\(second)), 9), 'hex')::uuid"
    }
}
