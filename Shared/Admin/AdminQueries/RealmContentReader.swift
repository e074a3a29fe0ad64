package import FoundationEssentials
package import Model
import ObjectStore
package import Postgres

/// Reads the content of a realm, for operators.
package struct RealmContentReader {
    /// The number of objects of a kind.
    package struct Count: Encodable {
        package let kind: String
        package let count: Int64
        package let deleted: Int64
        package let lastPosition: Int64
    }

    /// An object. The name of an unknown kind is `kind` and its number.
    package struct Object {
        package let kind: String
        package let id: UUID
        package let position: Int64
        package let editPosition: Int64
        /// JSON, as text.
        package let fields: String
    }

    /// Maximum number of realms that are listed for an object.
    private static let realmsMax: Int64 = 20

    package let environment: EnvironmentID
    package let realm: Int32

    /// - Returns: `nil` if the realm does not exist.
    package init?(_ path: RealmPath, in environment: EnvironmentID, on connection: inout Connection) throws {
        var directory = RealmDirectory()
        let number = try directory.id(of: path, in: environment, create: false, on: &connection)
        guard let number else { return nil }
        self.environment = environment
        realm = number
    }

    package func counts(on connection: inout Connection) throws -> [Count] {
        try connection.run(
            """
            SELECT coalesce(k.name, 'kind ' || o.kind), o.existing, o.deleted, o.last FROM (
                SELECT kind, count(*) FILTER (WHERE NOT deleted) AS existing,
                    count(*) FILTER (WHERE deleted) AS deleted, max(position) AS last
                FROM store.object WHERE environment_id = \(environment.rawValue) AND realm_id = \(realm)
                GROUP BY kind
            ) o LEFT JOIN realm.kind k ON k.number = o.kind ORDER BY o.kind
            """
        ).decode(String.self, Int64.self, Int64.self, Int64.self)
            .map { Count(kind: $0, count: $1, deleted: $2, lastPosition: $3) }
    }

    /// Returns paths of an environment's realms that begin with `prefix`, in order.
    package static func paths(
        in environment: EnvironmentID, prefix: String, after last: String, countMax: Int,
        on connection: inout Connection
    ) throws -> [String] {
        try connection.run(
            """
            SELECT path FROM realm.realm
            WHERE environment_id = \(environment.rawValue) AND starts_with(path, \(prefix)) AND path > \(last)
            ORDER BY path LIMIT \(Int64(countMax))
            """
        ).decode(String.self)
    }

    /// Returns existing objects, ordered by kind and id.
    ///
    /// - Parameter last: The id after which objects of each kind are read.
    package func objects(
        _ kind: Kind?, id: UUID?, after last: UUID? = nil, countMax: Int, on connection: inout Connection
    ) throws -> [Object] {
        try connection.run(
            """
            SELECT k.name, o.id, o.position, o.edit_position, o.fields
            FROM (
                SELECT n.number AS kind, i.name
                FROM (\(KindCatalogue.numbers(in: "\(environment.rawValue)"))) n JOIN realm.kind i USING (number)
                WHERE \(kind)::smallint IS NULL OR n.number = \(kind) ORDER BY n.number
            ) k CROSS JOIN LATERAL (
                SELECT * FROM store.object
                WHERE environment_id = \(environment.rawValue) AND realm_id = \(realm) AND kind = k.kind
                    AND NOT deleted AND (\(id)::uuid IS NULL OR id = \(id))
                    AND (\(last)::uuid IS NULL OR id > \(last))
                ORDER BY id LIMIT \(Int64(countMax))
            ) o LIMIT \(Int64(countMax))
            """
        ).decode(
            String.self, UUID.self, Int64.self, Int64.self, CanonicalJSON.self
        ).map {
            Object(
                kind: $0, id: $1, position: $2, editPosition: $3,
                fields: String(decoding: $4.bytes, as: UTF8.self))
        }
    }

    /// Returns the paths of the realms that have an object with this id, at most twenty.
    package static func realms(
        holding id: UUID, in environment: EnvironmentID, on connection: inout Connection
    ) throws -> [String] {
        try connection.run(
            """
            SELECT DISTINCT r.path
            FROM realm.realm r CROSS JOIN (\(KindCatalogue.numbers(in: "\(environment.rawValue)"))) k
            CROSS JOIN LATERAL (
                SELECT FROM store.object
                WHERE environment_id = \(environment.rawValue) AND realm_id = r.id AND kind = k.number AND id = \(id)
                    AND NOT deleted
                OFFSET 0
            ) o
            WHERE r.environment_id = \(environment.rawValue)
            ORDER BY r.path LIMIT \(realmsMax)
            """
        ).decode(String.self)
    }
}
