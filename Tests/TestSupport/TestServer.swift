import LocalCluster
package import Postgres
import Synchronization

/// The PostgreSQL server of the test process: created on first use, removed when the process exits.
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
            // No data lives long enough to need vacuuming, and autovacuum would visit each of the many databases.
            server = try ClusterServer(in: folder, options: ["max_connections": "800", "autovacuum": "off"])
            try server.start()
        } catch {
            fatalError("the tests need a PostgreSQL server: \(error)")
        }
    }

    /// Creates a database and returns its connection string.
    ///
    /// - Parameter template: The database to copy; an empty one by default.
    package func makeDatabase(from template: String = "template1") throws -> String {
        let name = "test_\(databaseCount.add(1, ordering: .relaxed).newValue)"
        // The server is slow while many tests start at once.
        var admin = try Connection(server.conninfo("postgres"), limits: .patient)
        try admin.runScript("CREATE DATABASE \(name) TEMPLATE \(template)")
        return server.conninfo(name)
    }

    /// Creates a template for ``makeDatabase(from:)`` and returns its name.
    ///
    /// - Parameter fill: Fills the database; no client connects to it afterwards.
    package func makeTemplate(_ name: String, _ fill: (inout Connection) throws -> Void) throws -> String {
        var connection = try Connection(try server.makeDatabase(name))
        try fill(&connection)
        return name
    }
}

/// Runs a body with a connection to an empty database and the database's connection string.
package func withTestDatabase<Success>(
    schema: [String] = [], _ body: (inout Connection, String) throws -> Success
) throws -> Success {
    let conninfo = try TestServer.shared.makeDatabase()
    var connection = try Connection(conninfo)
    for text in schema { try connection.runScript(text) }
    return try body(&connection, conninfo)
}

extension Limits {
    /// Limits for the connections of tests to a server that many tests use at once.
    static var patient: Limits {
        var limits = Limits()
        limits.connectMax = patienceMax
        return limits
    }
}
