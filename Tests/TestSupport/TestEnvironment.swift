package import FoundationEssentials
package import Model
import ObjectStore
package import Postgres

/// An environment whose back end does not exist, in its own database.
package struct TestEnvironment: ~Copyable {
    package let id: EnvironmentID
    package let conninfo: String
    package var connection: Connection

    package init() throws {
        let conninfo = try makeFoundationDatabase()
        var connection = try Connection(conninfo, limits: .patient)
        id = try EnvironmentRows(name: Self.name, backend: .init()).insert(on: &connection)
        self.conninfo = conninfo
        self.connection = connection
    }

    private static let name = "acme"

    /// Replaces the back end of the environment.
    package mutating func setBackend(_ backend: EnvironmentRows.Backend) throws {
        try EnvironmentRows(name: Self.name, backend: backend).insert(on: &connection)
    }

    /// Adds a person who exists in the back end.
    package mutating func addPerson(_ email: String, reference: [String: String] = ["companyCode": "1010"]) throws {
        try EnvironmentRows(name: Self.name, people: [email: reference]).insert(on: &connection)
    }

    /// Writes objects as a device does: their ids and fields as JSON.
    package mutating func put(_ objects: [(id: UUID, json: String)], _ kind: Kind, into path: RealmPath) throws {
        let realm = try realm(path)
        var batch = WriteBatch(environment: id)
        for (id, json) in objects {
            batch.put(ObjectKey(realm: realm, kind: kind, id: id), try CanonicalJSON(json), decision: 0, isEdit: true)
        }
        _ = try batch.commit(on: &connection)
    }

    /// Returns the number of a realm; creates the realm if necessary.
    package mutating func realm(_ path: RealmPath) throws -> Int32 {
        var directory = RealmDirectory()
        guard let realm = try directory.id(of: path, in: id, create: true, on: &connection) else {
            throw PostgresError(sqlState: nil, message: "no realm \(path)")
        }
        return realm
    }
}
