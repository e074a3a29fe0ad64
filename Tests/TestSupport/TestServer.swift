import LocalCluster
package import Postgres
import Synchronization

/// A PostgreSQL server of the test process's own: made at first use, removed when the process ends.
///
/// A machine without PostgreSQL fails the tests; it does not skip them.
package final class TestServer: Sendable {
    package static let shared = TestServer()

    private let folder: ClusterFolder
    private let server: ClusterServer
    private let databaseCount = Atomic<Int>(0)

    private init() {
        do {
            folder = try ClusterFolder("test")
            server = try ClusterServer(in: folder, options: ["max_connections": "800"])
            try server.start()
        } catch {
            fatalError("the tests need a PostgreSQL server: \(error)")
        }
    }

    /// Makes an empty database and returns its connection string.
    package func makeDatabase() throws -> String {
        try server.makeDatabase("test_\(databaseCount.add(1, ordering: .relaxed).newValue)")
    }
}

/// Lends a connection to an empty database, and the database's connection string.
package func withTestDatabase<Success>(
    schema: [String] = [], _ body: (inout Connection, String) throws -> Success
) throws -> Success {
    let conninfo = try TestServer.shared.makeDatabase()
    var connection = try Connection(conninfo)
    for text in schema { try connection.runScript(text) }
    return try body(&connection, conninfo)
}
