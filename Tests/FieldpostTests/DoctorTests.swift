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

/// Faults that are planted into an installation, and what `fieldpost doctor` says of each.
/// docs/operators/troubleshooting.md lists them.
@Suite(.ownThreads) struct DoctorTests {
    private static let key = Data((0..<32).map { UInt8($0) }).base64EncodedString()
    private static let otherKey = Data((0..<32).map { UInt8(255 - $0) }).base64EncodedString()
    private static let nobody = "host=127.0.0.1 port=1"
    private static let topics = Dictionary(uniqueKeysWithValues: Topics.all.map { ($0.name, $0.partitions) })

    /// What it said, and with which status it ended.
    private struct Said {
        let status: Int32
        private let rows: [[String: Any]]

        init(_ answer: Answer) throws {
            status = answer.status
            rows = try answer.rows()
        }

        var notGood: [String] { rows.filter { $0["state"] as? String != "OK" }.map { "\($0)" } }

        /// Whether a check has this state, and says these words of what was seen and of what to do.
        func has(_ state: String, _ check: String, _ seen: String = "", do remedy: String = "") -> Bool {
            rows.contains { row in
                func contains(_ field: String, _ part: String) -> Bool {
                    part.isEmpty || (row[field] as? String ?? "").contains(part)
                }
                return row["state"] as? String == state && contains("check", check) && contains("seen", seen)
                    && (state == "OK" || !(row["remedy"] as? String ?? "").isEmpty) && contains("remedy", remedy)
            }
        }
    }

    private func doctor(
        _ arguments: String..., database: String = nobody, brokers: String = "127.0.0.1:1",
        with variables: [String: String] = [:]
    ) throws -> Said {
        let all = [
            "FIELDPOST_DATABASE_URL": database, "FIELDPOST_KAFKA_BROKERS": brokers,
            "FIELDPOST_ONBOARDING_URL": "http://127.0.0.1:1",
        ].merging(variables) { $1 }
        return try Said(try fieldpost(["doctor", "--json"] + arguments, environment: all))
    }

    /// A server whose data would survive a machine that loses power, migrated by the program.
    @Test func aHealthyInstallationIsWell() async throws {
        try await withProvider { provider in
            try await withMockCluster(topics: Self.topics) { cluster in
                let server = try ClusterServer(in: try ClusterFolder("doctor"), options: ["fsync": "on"])
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
                let answer = try fieldpost(["doctor", "--json"], environment: variables)
                let said = try Said(answer)
                #expect(said.notGood.isEmpty)
                #expect(said.status == 0)
                for check in [
                    "PostgreSQL: schema", "PostgreSQL: durability", "Kafka: brokers", "topic entry.events", "secrets",
                    "acme: client", "acme: keys", "settings", "time",
                ] { #expect(said.has("OK", check), "\(check): \(answer.output)") }
                let text = try fieldpost(["doctor"], environment: variables)
                #expect(text.output.contains("OK    PostgreSQL: schema: \(Schema.version)"))
                #expect(text.output.hasSuffix(" OK, 0 WARN, 0 FAIL\n"))
                #expect(!text.output.contains("\u{1B}"))
            }
        }
    }

    @Test func faultsOfSettingsAreFound() throws {
        let said = try doctor(with: [
            "FIELDPOST_WORKER_COUNTS": "4", "FIELDPOST_SUBMITTER_INFLIGHT_MAX": "9000",
            "FIELDPOST_KAFKA_SECURITY_PROTOCOL": "telepathy", "FIELDPOST_SECRET_KEYS": "short",
        ])
        #expect(said.status == 1)
        #expect(said.has("FAIL", "FIELDPOST_WORKER_COUNTS", "no service", do: "did you mean FIELDPOST_WORKER_COUNT?"))
        #expect(said.has("FAIL", "FIELDPOST_SUBMITTER_INFLIGHT_MAX", "from 1 to 1024", do: "entry-submitter"))
        #expect(said.has("FAIL", "settings: librdkafka", "telepathy", do: "CONFIGURATION.md"))
        #expect(said.has("FAIL", "secrets", "32 bytes", do: "FIELDPOST_SECRET_KEYS"))
        #expect(!said.has("WARN", "FIELDPOST_ONBOARDING_URL"))
        let answer = try fieldpost(["doctor", "--json"], environment: ["FIELDPOST_DATABASE_URL": Self.nobody])
        #expect(try Said(answer).has("WARN", "FIELDPOST_ONBOARDING_URL", "not set", do: "onboarding"))
    }

    @Test func aDatabaseOrABrokerThatIsAwayIsFound() throws {
        let said = try doctor()
        #expect(said.status == 1)
        #expect(said.has("FAIL", "PostgreSQL: reachable", do: "FIELDPOST_DATABASE_URL"))
        #expect(said.has("FAIL", "Kafka: brokers", do: "FIELDPOST_KAFKA_BROKERS"))
    }

    @Test func faultsOfTheDatabaseAreFound() throws {
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
        let said = try doctor(database: conninfo)
        #expect(said.has("FAIL", "PostgreSQL: durability", "synchronous_commit", do: "synchronous_commit = on"))
        #expect(said.has("FAIL", "PostgreSQL: writing", "read only", do: "primary"))
        #expect(said.has("FAIL", "PostgreSQL: history", "restored", do: "fieldpost restore"))
        #expect(said.has("OK", "PostgreSQL: schema"))
        let reader = try doctor(database: "\(conninfo) user=reader_of_\(name)")
        #expect(reader.has("WARN", "PostgreSQL: rights", "reader_of_\(name) may not read", do: "GRANT"))

        let old = try makeFoundationDatabase()
        var other = try Connection(old)
        try other.run("DELETE FROM realm.migration WHERE number > \(Schema.version - 1)")
        #expect(try doctor(database: old).has("WARN", "PostgreSQL: schema", "\(Schema.version - 1)", do: "migrate"))
        try other.run("INSERT INTO realm.migration (number, name, checksum) VALUES (\(Schema.version + 1), 'new', '')")
        #expect(try doctor(database: old).has("FAIL", "PostgreSQL: schema", "newer", do: "newer release"))

        let empty = try TestServer.shared.makeDatabase()
        #expect(try doctor(database: empty).has("FAIL", "PostgreSQL: schema", "there is none", do: "fieldpost migrate"))
    }

    @Test func aDatabaseOfAnotherEncodingIsFound() throws {
        try withTestDatabase { connection, conninfo in
            let name = try connection.run("SELECT current_database()::text")[0].decode(String.self)
            try connection.runScript(
                "CREATE DATABASE \(name)_ascii ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0")
            let said = try doctor(database: "\(conninfo) dbname=\(name)_ascii")
            #expect(said.has("FAIL", "PostgreSQL: encoding", "SQL_ASCII", do: "UTF8"))
        }
    }

    @Test func faultsOfTheBrokerAreFound() async throws {
        var topics = Self.topics
        topics[Topics.realm.name] = nil
        topics[Topics.task.name] = Topics.task.partitions - 1
        try await withMockCluster(topics: topics) { [topics] cluster in
            cluster.lead(Topics.poll.name, 3, false)
            cluster.spoil(topic: Topics.share.name, with: 29)
            cluster.spoil(.offsetFetch, with: [Int32](repeating: 30, count: topics.count * 4))
            let said = try doctor(brokers: cluster.address)
            #expect(said.status == 1)
            #expect(said.has("FAIL", "topic realm.events", "may not describe it", do: "fieldpost topics apply"))
            #expect(said.has("FAIL", "topic task.events", "fewer than", do: "fieldpost topics scale task.events"))
            #expect(said.has("FAIL", "topic poll.events", "without a leader, such as 3", do: "brokers"))
            #expect(said.has("FAIL", "topic share.events", do: "grant this client access to the topic"))
            #expect(said.has("FAIL", "Kafka: group entry-submitter", do: "access to the consumer group"))
            #expect(said.has("OK", "topic entry.events"))
        }
    }

    @Test func aRefusedPasswordIsFound() async throws {
        try await withOwnThread {
            let broker = try RefusingBroker()
            let said = try doctor(
                brokers: broker.address,
                with: [
                    "FIELDPOST_KAFKA_SECURITY_PROTOCOL": "sasl_plaintext", "FIELDPOST_KAFKA_SASL_MECHANISM": "PLAIN",
                    "FIELDPOST_KAFKA_SASL_USERNAME": "fieldpost", "FIELDPOST_KAFKA_SASL_PASSWORD": "wrong",
                ])
            #expect(said.has("FAIL", "Kafka: brokers", "_AUTHENTICATION", do: "kafka.sasl.password"))
        }
    }

    @Test func faultsOfEnvironmentsAndSecretsAreFound() async throws {
        try await withProvider { provider in
            try await withOwnThread {
                let conninfo = try makeFoundationDatabase()
                var connection = try Connection(conninfo)
                let box = try SecretBox([Self.key])
                for (id, name, secret) in [(1, "wrong", "another-secret"), (2, "away", "any")] {
                    let issuer = name == "away" ? "http://127.0.0.1:1" : provider.issuer(name)
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
                let said = try doctor(database: conninfo, with: keyed)
                #expect(said.has("FAIL", "wrong: client", do: "--client-secret-from"))
                #expect(said.has("FAIL", "away: discovery", do: "--discovery-url"))
                #expect(said.has("FAIL", "away: keys", do: "--jwks-url"))
                #expect(said.has("FAIL", "away: back end", do: "--backend-url"))
                #expect(said.has("OK", "secrets", "2 open"))
                let only = try doctor("--environment", "wrong", database: conninfo, with: keyed)
                #expect(!only.has("FAIL", "away:"))
                #expect(try doctor("--environment", "none", database: conninfo).has("FAIL", "environment none"))
                let locked = try doctor(database: conninfo, with: ["FIELDPOST_SECRET_KEYS": Self.otherKey])
                #expect(locked.has("FAIL", "secrets: client secrets", "2 of 2", do: "FIELDPOST_SECRET_KEYS"))
            }
        }
    }

    @Test func faultsOfAddressesAreFound() async throws {
        try await withOwnThread {
            let late = Timestamp(millisecondsSinceEpoch: Timestamp.now().millisecondsSinceEpoch - 7_200_000).httpText
            let server = try LocalListener.answering(headers: ["Date: \(late)"])
            let stranger = try TLSServer()
            let said = try doctor(
                "--url", "http://\(server.address)/v1", "--url", "https://127.0.0.1:\(stranger.port)", "--url",
                "http://127.0.0.1:2")
            #expect(said.has("FAIL", "\(server.address): time", "2h 00m behind", do: "NTP"))
            #expect(said.has("FAIL", "\(stranger.port): certificate", "self", do: "whole chain"))
            #expect(said.has("FAIL", "127.0.0.1:2: reachable", do: "firewall"))
        }
    }

    /// `openssl s_server`'s certificate ends after a day.
    @Test func aCertificateThatEndsSoonIsFound() async throws {
        let server = try await Task.detached { try TLSServer() }.value
        var check = AddressCheck(addresses: ["https://127.0.0.1:\(server.port)/any"])
        check.configuration.caFile = server.certificateFile
        let finding = try #require(await check.findings().first)
        #expect(finding.state == .warning)
        #expect(finding.seen.contains("in 23h") && finding.remedy?.contains("renew") == true)
    }
}
