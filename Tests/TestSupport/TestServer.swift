import Foundation
package import Postgres
import Synchronization

/// A PostgreSQL server of the test process's own: made at first use, removed when the process ends.
///
/// A machine without PostgreSQL fails the tests; it does not skip them.
package final class TestServer: Sendable {
    package static let shared = TestServer()

    /// The folder of the server's socket, which is also its host name for libpq.
    let folder: URL
    private let port = 5432
    private let databaseCount = Atomic<Int>(0)

    private init() {
        folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("fieldpost-test-\(ProcessInfo.processInfo.processIdentifier)")
        do {
            try start()
        } catch {
            fatalError("the tests need a PostgreSQL server: \(error)")
        }
    }

    /// A connection string for one of the server's databases.
    package func conninfo(_ database: String) -> String {
        "host=\(folder.path) port=\(port) user=fieldpost dbname=\(database)"
    }

    /// Makes an empty database and returns its connection string.
    package func makeDatabase() throws -> String {
        let name = "test_\(databaseCount.add(1, ordering: .relaxed).newValue)"
        var admin = try Connection(conninfo("postgres"))
        try admin.runScript("CREATE DATABASE \(name)")
        return conninfo(name)
    }

    /// One shell script does it, with everything the server inherits closed.
    ///
    /// The last part waits for this process to end, however it ends, and then stops the server and removes its folder.
    private func start() throws {
        let binaries = try Self.binaries()
        // PostgreSQL refuses to run as root.
        let user = getuid() == 0 ? "runuser -u postgres --" : ""
        let script = """
            set -e; cd /
            mkdir -p \(folder.path)
            [ "$(id -u)" = 0 ] && chown postgres \(folder.path)
            \(user) \(binaries)/initdb -D \(folder.path)/data -U fieldpost -A trust -E UTF8 --locale=C.UTF-8 -N >/dev/null
            \(user) \(binaries)/pg_ctl -D \(folder.path)/data -w -l \(folder.path)/log -o "-p \(port) -k \(folder.path) \
            -c listen_addresses= -c fsync=off -c max_connections=200 -c shared_buffers=128MB" start >/dev/null
            setsid sh -c 'while kill -0 \(getpid()); do sleep 1; done
            \(user) \(binaries)/pg_ctl -D \(folder.path)/data -m immediate stop
            rm -rf \(folder.path)' >/dev/null 2>&1 </dev/null &
            """
        let status = try runShell(script)
        guard status == 0 else { throw Missing(what: "starting it ended with status \(status)") }
    }

    private static func binaries() throws -> String {
        let root = "/usr/lib/postgresql"
        let versions = (try? FileManager.default.contentsOfDirectory(atPath: root)) ?? []
        guard let newest = versions.compactMap({ Int($0) }).max(), newest >= 15 else {
            throw Missing(what: "PostgreSQL 15 or later in \(root) (apt-get install postgresql)")
        }
        return "\(root)/\(newest)/bin"
    }

    private struct Missing: Error, CustomStringConvertible {
        let what: String
        var description: String { what }
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

/// Runs a shell script and waits for it. `Process` is not used: it waits for whatever the child leaves running, too.
func runShell(_ script: String) throws -> Int32 {
    var process = pid_t()
    let words = ["sh", "-c", script]
    var arguments: [UnsafeMutablePointer<CChar>?] = unsafe words.map { unsafe strdup($0) }
    unsafe arguments.append(nil)
    defer { unsafe arguments.forEach { unsafe free($0) } }
    let spawned = unsafe posix_spawn(&process, "/bin/sh", nil, nil, &arguments, environ)
    guard spawned == 0 else { throw POSIXError(POSIXErrorCode(rawValue: spawned) ?? .EAGAIN) }
    var status: Int32 = 0
    while unsafe waitpid(process, &status, 0) < 0, errno == EINTR {}
    return (status >> 8) & 0xff
}
