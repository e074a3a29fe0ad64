import Essentials
import Foundation
import HTTPClient
import LocalCluster
import Model
import ObjectStore
import Postgres
import Secrets
import TestSupport
import Testing

@testable import Fieldpost
@testable import Sandbox

/// Faults injected into an installation, and the findings of `fieldpost doctor`. docs/operators/troubleshooting.md
/// lists them.
@Suite(.ownThreads) struct DoctorTests {
    private static let key = Data((0..<32).map { UInt8($0) }).base64EncodedString()
    private static let otherKey = Data((0..<32).map { UInt8(255 - $0) }).base64EncodedString()
    private static let unusedAddress = "host=127.0.0.1 port=1"
    private static let topics = Dictionary(uniqueKeysWithValues: Topics.all.map { ($0.name, $0.partitions) })

    /// The findings and the exit status.
    private struct DoctorReport {
        let status: Int32
        private let rows: [[String: Any]]

        init(_ result: CommandResult) throws {
            status = result.status
            rows = try result.rows()
        }

        var notGood: [String] { rows.filter { $0["state"] as? String != "OK" }.map { "\($0)" } }

        /// Whether a check has this state, and its finding and action contain these texts.
        func has(_ state: String, _ check: String, _ seen: String = "", do remedy: String = "") -> Bool {
            rows.contains { row in
                func contains(_ field: String, _ part: String) -> Bool {
                    part.isEmpty || (row[field] as? String ?? "").contains(part)
                }
                return row["state"] as? String == state && contains("check", check) && contains("finding", seen)
                    && (state == "OK" || !(row["action"] as? String ?? "").isEmpty) && contains("action", remedy)
            }
        }
    }

    private func doctor(
        _ arguments: String..., database: String = unusedAddress, brokers: String = "127.0.0.1:1",
        with variables: [String: String] = [:]
    ) throws -> DoctorReport {
        let all = [
            "FIELDPOST_DATABASE_URL": database, "FIELDPOST_KAFKA_BROKERS": brokers,
            "FIELDPOST_ONBOARDING_URL": "http://127.0.0.1:1",
        ].merging(variables) { $1 }
        return try DoctorReport(try fieldpost(["doctor", "--json"] + arguments, environment: all))
    }

    /// A durable server, migrated by the program.
    @Test func healthyInstallationHasNoFindings() async throws {
        try await withProvider { provider in
            try await withMockCluster(topics: Self.topics) { cluster in
                let server = try ClusterServer(
                    in: try ClusterFolder("doctor"),
                    options: [
                        "fsync": "on", "archive_mode": "on", "archive_command": "true", "archive_timeout": "60",
                    ])
                try server.start()
                let conninfo = try server.makeDatabase("healthy")
                let schema = projectFolder.appendingPathComponent("deploy/schema").path
                let variables = [
                    "FIELDPOST_DATABASE_URL": conninfo, "FIELDPOST_KAFKA_BROKERS": cluster.address,
                    "FIELDPOST_SECRET_KEYS": Self.key, "FIELDPOST_ONBOARDING_URL": provider.issuer("acme"),
                    "FIELDPOST_SCHEMA": schema, "SECRET": TestProvider.client.secret,
                ]
                let migrated = try fieldpost("migrate", "--finish", environment: variables)
                #expect(migrated.status == 0, "\(migrated.errors)")
                let added = try fieldpost(
                    [
                        "environment", "add", "acme", "--domain", "example.com", "--issuer", provider.issuer("acme"),
                        "--audience", "fieldpost", "--backend", "none", "--client-id", TestProvider.client.id,
                        "--client-secret-from", "SECRET",
                    ], environment: variables)
                #expect(added.status == 0, "\(added.errors)")
                let result = try fieldpost(["doctor", "--json"], environment: variables)
                let report = try DoctorReport(result)
                #expect(report.notGood.isEmpty)
                #expect(report.status == 0)
                for check in [
                    "PostgreSQL: schema", "PostgreSQL: durability", "PostgreSQL: WAL archive", "Kafka: brokers",
                    "topic entry.events", "secrets",
                    "acme: client", "acme: keys", "settings", "time",
                ] { #expect(report.has("OK", check), "\(check): \(result.output)") }
                let text = try fieldpost(["doctor"], environment: variables)
                #expect(text.output.contains("OK    PostgreSQL: schema: \(Schema.version)"))
                #expect(text.output.hasSuffix(" OK, 0 WARN, 0 FAIL\n"))
                #expect(!text.output.contains("\u{1B}"))
            }
        }
    }

    @Test func failedArchiveIsReported() throws {
        let server = try ClusterServer(
            in: try ClusterFolder("archive"), options: ["archive_mode": "on", "archive_command": "false"])
        try server.start()
        var connection = try Connection(server.conninfo("postgres"))
        try connection.run("SELECT pg_switch_wal()")
        let deadline = ContinuousClock.now + patienceMax
        while try connection.run("SELECT failed_count FROM pg_stat_archiver")[0].decode(Int64.self) == 0 {
            try #require(ContinuousClock.now < deadline)
            try connection.run("SELECT pg_sleep(0.05)")
        }
        let report = try doctor(database: server.conninfo("postgres"))
        #expect(report.has("FAIL", "PostgreSQL: WAL archive", "archiving fails", do: "archive_command"))
    }

    @Test func settingsFaultsAreReported() throws {
        let report = try doctor(with: [
            "FIELDPOST_WORKER_COUNTS": "4", "FIELDPOST_SUBMITTER_INFLIGHT_MAX": "9000",
            "FIELDPOST_KAFKA_SECURITY_PROTOCOL": "telepathy", "FIELDPOST_SECRET_KEYS": "short",
        ])
        #expect(report.status == 1)
        #expect(
            report.has("FAIL", "FIELDPOST_WORKER_COUNTS", "unknown setting", do: "did you mean FIELDPOST_WORKER_COUNT?")
        )
        #expect(report.has("FAIL", "FIELDPOST_SUBMITTER_INFLIGHT_MAX", "from 1 to 1024", do: "entry-submitter"))
        #expect(report.has("FAIL", "settings: librdkafka", "telepathy", do: "CONFIGURATION.md"))
        #expect(report.has("FAIL", "secrets", "32 bytes", do: "FIELDPOST_SECRET_KEYS"))
        #expect(!report.has("WARN", "FIELDPOST_ONBOARDING_URL"))
        let result = try fieldpost(["doctor", "--json"], environment: ["FIELDPOST_DATABASE_URL": Self.unusedAddress])
        #expect(try DoctorReport(result).has("WARN", "FIELDPOST_ONBOARDING_URL", "not set", do: "onboarding"))
    }

    @Test func unavailableDatabaseAndBrokerAreReported() throws {
        let report = try doctor()
        #expect(report.status == 1)
        #expect(report.has("FAIL", "PostgreSQL: reachable", do: "FIELDPOST_DATABASE_URL"))
        #expect(report.has("FAIL", "Kafka: brokers", do: "FIELDPOST_KAFKA_BROKERS"))
    }

    @Test func databaseFaultsAreReported() throws {
        let conninfo = try makeFoundationDatabase()
        var connection = try Connection(conninfo)
        let name = try connection.run("SELECT current_database()::text")[0].decode(String.self)
        try connection.runScript(
            """
            ALTER DATABASE \(name) SET synchronous_commit = off;
            ALTER DATABASE \(name) SET default_transaction_read_only = on;
            UPDATE realm.lineage SET timeline = timeline + 1;
            CREATE ROLE reader_of_\(name) LOGIN;
            """)
        let report = try doctor(database: conninfo)
        #expect(report.has("FAIL", "PostgreSQL: durability", "synchronous_commit", do: "synchronous_commit = on"))
        #expect(report.has("FAIL", "PostgreSQL: writing", "read-only", do: "primary"))
        #expect(report.has("FAIL", "PostgreSQL: timeline", "restored", do: "fieldpost restore"))
        #expect(report.has("OK", "PostgreSQL: schema"))
        let reader = try doctor(database: "\(conninfo) user=reader_of_\(name)")
        #expect(reader.has("WARN", "PostgreSQL: privileges", "reader_of_\(name) may not read", do: "GRANT"))

        let old = try makeFoundationDatabase()
        var other = try Connection(old)
        try other.run("DELETE FROM realm.migration WHERE number > \(Schema.version - 1)")
        #expect(try doctor(database: old).has("WARN", "PostgreSQL: schema", "\(Schema.version - 1)", do: "migrate"))
        try other.run("INSERT INTO realm.migration (number, name, checksum) VALUES (\(Schema.version + 1), 'new', '')")
        #expect(try doctor(database: old).has("FAIL", "PostgreSQL: schema", "newer", do: "newer release"))

        let empty = try TestServer.shared.makeDatabase()
        #expect(try doctor(database: empty).has("FAIL", "PostgreSQL: schema", "no schema", do: "fieldpost migrate"))
    }

    @Test func wrongDatabaseEncodingIsReported() throws {
        try withTestDatabase { connection, conninfo in
            let name = try connection.run("SELECT current_database()::text")[0].decode(String.self)
            try connection.runScript(
                "CREATE DATABASE \(name)_ascii ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0")
            let report = try doctor(database: "\(conninfo) dbname=\(name)_ascii")
            #expect(report.has("FAIL", "PostgreSQL: encoding", "SQL_ASCII", do: "UTF8"))
        }
    }

    @Test func brokerFaultsAreReported() async throws {
        var topics = Self.topics
        topics[Topics.realm.name] = nil
        topics[Topics.task.name] = Topics.task.partitions - 1
        try await withMockCluster(topics: topics) { [topics] cluster in
            cluster.lead(Topics.poll.name, 3, false)
            cluster.spoil(topic: Topics.share.name, with: 29)
            cluster.spoil(.offsetFetch, with: [Int32](repeating: 30, count: topics.count * 4))
            let report = try doctor(brokers: cluster.address)
            #expect(report.status == 1)
            #expect(report.has("FAIL", "topic realm.events", "may not describe it", do: "fieldpost topics apply"))
            #expect(report.has("FAIL", "topic task.events", "fewer than", do: "fieldpost topics scale task.events"))
            #expect(report.has("FAIL", "topic poll.events", "without a leader, such as 3", do: "brokers"))
            #expect(report.has("FAIL", "topic share.events", do: "grant this client access to the topic"))
            #expect(report.has("FAIL", "Kafka: group entry-submitter", do: "access to the consumer group"))
            #expect(report.has("OK", "topic entry.events"))
        }
    }

    @Test func rejectedBrokerPasswordIsReported() async throws {
        try await withOwnThread {
            let broker = try RefusingBroker()
            let report = try doctor(
                brokers: broker.address,
                with: [
                    "FIELDPOST_KAFKA_SECURITY_PROTOCOL": "sasl_plaintext", "FIELDPOST_KAFKA_SASL_MECHANISM": "PLAIN",
                    "FIELDPOST_KAFKA_SASL_USERNAME": "fieldpost", "FIELDPOST_KAFKA_SASL_PASSWORD": "wrong",
                ])
            #expect(report.has("FAIL", "Kafka: brokers", "_AUTHENTICATION", do: "kafka.sasl.password"))
        }
    }

    @Test func environmentAndSecretFaultsAreReported() async throws {
        try await withProvider { provider in
            try await withOwnThread {
                let conninfo = try makeFoundationDatabase()
                var connection = try Connection(conninfo)
                let box = try SecretBox([Self.key])
                for (id, name, secret) in [(1, "wrong", "another-secret"), (2, "offline", "any")] {
                    let issuer = name == "offline" ? "http://127.0.0.1:1" : provider.issuer(name)
                    let environment = EnvironmentID(rawValue: Int32(id))
                    try EnvironmentRows(
                        id: Int32(id), name: name,
                        provider: .init(
                            issuer: issuer, clientID: TestProvider.client.id,
                            clientSecret: Bytea(try box.seal(secret, at: SecretContext.clientSecret(environment)))),
                        backend: .init()
                    ).insert(on: &connection)
                }
                let keyed = ["FIELDPOST_SECRET_KEYS": Self.key]
                let report = try doctor(database: conninfo, with: keyed)
                #expect(report.has("FAIL", "wrong: client", do: "--client-secret-from"))
                #expect(report.has("FAIL", "offline: discovery", do: "--discovery-url"))
                #expect(report.has("FAIL", "offline: keys", do: "--jwks-url"))
                #expect(report.has("FAIL", "offline: back end", do: "--backend-url"))
                #expect(report.has("OK", "secrets", "2 open"))
                let only = try doctor("--environment", "wrong", database: conninfo, with: keyed)
                #expect(!only.has("FAIL", "offline:"))
                #expect(try doctor("--environment", "none", database: conninfo).has("FAIL", "environment none"))
                let locked = try doctor(database: conninfo, with: ["FIELDPOST_SECRET_KEYS": Self.otherKey])
                #expect(locked.has("FAIL", "secrets: client secrets", "2 of 2", do: "FIELDPOST_SECRET_KEYS"))
            }
        }
    }

    @Test func addressFaultsAreReported() async throws {
        try await withOwnThread {
            let late = Timestamp(millisecondsSinceEpoch: Timestamp.now().millisecondsSinceEpoch - 7_200_000).httpText
            let server = try LocalListener.answering(headers: ["Date: \(late)"])
            let tlsServer = try TLSServer()
            let report = try doctor(
                "--url", "http://\(server.address)/v1", "--url", "https://127.0.0.1:\(tlsServer.port)", "--url",
                "http://127.0.0.1:2")
            #expect(report.has("FAIL", "\(server.address): time", "2h ", do: "NTP"))
            #expect(report.has("FAIL", "\(tlsServer.port): certificate", "self", do: "complete chain"))
            #expect(report.has("FAIL", "127.0.0.1:2: reachable", do: "firewall"))
        }
    }

    /// The certificate of `openssl s_server` expires after a day.
    @Test func expiringCertificateIsReported() async throws {
        let server = try await Task.detached { try TLSServer() }.value
        var check = AddressCheck(addresses: ["https://127.0.0.1:\(server.port)/any"])
        check.configuration.caFile = server.certificateFile
        let finding = try #require(await check.findings().first)
        #expect(finding.state == .warning)
        #expect(finding.seen.contains("in 23h") && finding.remedy?.contains("renew") == true)
    }
}
