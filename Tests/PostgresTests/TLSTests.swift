import Foundation
import LocalCluster
import Postgres
import TestSupport
import Testing

/// `sslmode=verify-full` with a self-signed server certificate.
@Suite(.ownThreads) struct TLSTests {
    @Test func serverIsTrustedOnlyByAuthorityAndName() async throws {
        try await withOwnThread {
            let folder = try ClusterFolder("tls")
            let port = try Ports.free()
            let server = try ClusterServer(
                in: folder,
                options: [
                    "port": "\(port)", "listen_addresses": "127.0.0.1", "ssl": "on",
                    "ssl_cert_file": folder.path + "/postgres/server.crt",
                    "ssl_key_file": folder.path + "/postgres/server.key",
                ])
            try makeCertificate(named: "server", in: folder.path + "/postgres")
            try makeCertificate(named: "other", in: folder.path + "/postgres")
            // PostgreSQL accepts only a key of its own user.
            try runToEnd("chown", ["--reference", folder.path + "/postgres", folder.path + "/postgres/server.key"])
            try server.start()
            defer { server.kill9() }

            func conninfo(host: String = "localhost", authority: String) -> String {
                "host=\(host) hostaddr=127.0.0.1 port=\(port) user=\(ClusterServer.user) dbname=postgres "
                    + "sslmode=verify-full sslrootcert=\(folder.path)/postgres/\(authority).crt"
            }
            var connection = try Connection(conninfo(authority: "server"))
            let rows = try connection.run("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()")
            #expect(try rows[0].value(0) == true)

            let untrusted = #expect(throws: PostgresError.self) { _ = try Connection(conninfo(authority: "other")) }
            #expect(untrusted?.message.contains("certificate verify failed") == true, "\(untrusted?.message ?? "")")
            let misnamed = #expect(throws: PostgresError.self) {
                _ = try Connection(conninfo(host: "elsewhere.example", authority: "server"))
            }
            #expect(misnamed?.message.contains("does not match host name") == true, "\(misnamed?.message ?? "")")

            // A renewed file of authorities is read by the next session.
            let folderOfFiles = folder.path + "/postgres"
            try runToEnd("cp", [folderOfFiles + "/server.crt", folderOfFiles + "/other.crt"])
            _ = try Connection(conninfo(authority: "other"))
        }
    }

    @Test func passwordFileIsReadByEachSession() async throws {
        try await withOwnThread {
            let folder = try ClusterFolder("password")
            let port = try Ports.free()
            let server = try ClusterServer(
                lasting: folder.path + "/lasting", in: folder, port: port, password: "old")
            try server.start()
            defer { server.kill9() }
            let file = folder.path + "/pgpass"
            func store(_ password: String) throws {
                try Data("*:*:*:*:\(password)\n".utf8).write(to: URL(filePath: file))
                // libpq ignores a file that others can read.
                try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: file)
            }
            let conninfo = "host=127.0.0.1 port=\(port) user=\(ClusterServer.user) dbname=postgres passfile=\(file)"
            try store("old")
            var connection = try Connection(conninfo)
            try connection.run("ALTER ROLE fieldpost PASSWORD 'new'")
            let refused = #expect(throws: PostgresError.self) { _ = try Connection(conninfo) }
            #expect(refused?.message.contains("password authentication failed") == true)
            #expect(refused?.isRetriable == true)
            try store("new")
            _ = try Connection(conninfo)
            // The session with the old password continues.
            #expect(try connection.run("SELECT 1")[0].value(0, as: Int32.self) == 1)
        }
    }

    /// Creates a key and a self-signed certificate for `localhost`.
    private func makeCertificate(named name: String, in folder: String) throws {
        let arguments =
            "req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=localhost -addext subjectAltName=DNS:localhost"
            + " -keyout \(folder)/\(name).key -out \(folder)/\(name).crt"
        try runToEnd("openssl", arguments.split(separator: " ").map(String.init))
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: "\(folder)/\(name).key")
    }
}
