import Foundation
import Model
import ObjectStore
import Postgres
import TestSupport

/// Returns the text of every file in `deploy/schema`, in order.
func schema() throws -> [String] {
    let folder = projectFolder.appendingPathComponent("deploy/schema")
    return try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted()
        .map { try String(contentsOf: folder.appendingPathComponent($0), encoding: .utf8) }
}

/// Creates a database with the schema, one environment and one realm.
func withRealm(
    _ body: (inout Connection, EnvironmentID, Int32, String) throws -> Void
) throws {
    let conninfo = try makeFoundationDatabase()
    var connection = try Connection(conninfo)
    let id: Int32 = try connection.run("INSERT INTO realm.environment (name) VALUES ('acme') RETURNING id")[0]
        .value(0)
    let environment = EnvironmentID(rawValue: id)
    var directory = RealmDirectory()
    let realm = try directory.id(
        of: try RealmPath.user("ana@example.com"), in: environment, create: true, on: &connection)
    guard let realm else { throw NoRealm() }
    try body(&connection, environment, realm, conninfo)
}

struct NoRealm: Error {}
