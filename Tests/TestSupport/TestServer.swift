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
            // Nothing is kept for long enough to be vacuumed, and each of the many databases would be looked after.
            server = try ClusterServer(in: folder, options: ["max_connections": "800", "autovacuum": "off"])
            try server.start()
        } catch {
            fatalError("the tests need a PostgreSQL server: \(error)")
        }
    }

    /// Makes a database and returns its connection string.
    ///
    /// - Parameter template: The database that it is a copy of; an empty one, unless another is given.
    package func makeDatabase(from template: String = "template1") throws -> String {
        let name = "test_\(databaseCount.add(1, ordering: .relaxed).newValue)"
        // Where many tests begin at once, a server takes its time.
        var admin = try Connection(server.conninfo("postgres"), limits: .patient)
        try admin.runScript("CREATE DATABASE \(name) TEMPLATE \(template)")
        return server.conninfo(name)
    }

    /// Makes a database for ``makeDatabase(from:)``, and returns its name.
    ///
    /// - Parameter fill: Nobody connects to the database after it.
    package func makeTemplate(_ name: String, _ fill: (inout Connection) throws -> Void) throws -> String {
        var connection = try Connection(try server.makeDatabase(name))
        try fill(&connection)
        return name
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

extension Limits {
    /// For connections of tests themselves, to a server that many of them begin to use at once.
    static var patient: Limits {
        var limits = Limits()
        limits.connectMax = patienceMax
        return limits
    }
}
