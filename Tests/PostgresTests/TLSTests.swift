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
