import Postgres
import TestSupport
import Testing

@testable import LocalCluster

/// Connections to a PostgreSQL server that has just been started.
@Suite(.ownThreads) struct ClusterServerTests {
    /// On a slow machine a server that runs accepts no connection for a while.
    @Test func connectionToAStartingServerIsRetried() throws {
        let folder = try ClusterFolder("server")
        let server = try ClusterServer(
            lasting: folder.path + "/postgres", in: folder, port: try Ports.free(), password: "secret")
        #expect(server.conninfo("postgres").hasSuffix("?connect_timeout=60"))
        #expect(throws: PostgresError.self, "a server that does not run") { try server.makeDatabase("first") }
        try server.launch()
        #expect(try server.makeDatabase("first") == server.makeDatabase("first"), "the second call finds it")
        var connection = try Connection(server.conninfo("first"))
        #expect(try connection.run("SELECT current_database()")[0].decode(String.self) == "first")
    }
}
