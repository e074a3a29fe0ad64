import Foundation
import Identity
import Model
import Postgres
import Secrets
import TenantMigration
import TestSupport
import Testing

/// Two installations, and an environment with rows of most tables that is moved from one to the other.
struct EnvironmentMoveFixture {
    let source: String
    let destination: String
    let environment = EnvironmentID(rawValue: 7)
    private let secretKeys: [String: String]
    static let key = Data(repeating: 3, count: 32).base64EncodedString()
    /// The plain texts of the sealed secrets.
    static let secrets = ["password", "client", "token"]

    init(objectCount: Int64 = 1_000) throws {
        (source, destination) = (try makeFoundationDatabase(), try makeFoundationDatabase())
        secretKeys = [
            source: Data(repeating: 1, count: 32).base64EncodedString(),
            destination: Data(repeating: 2, count: 32).base64EncodedString(),
        ]
        var connection = try Connection(source)
        let box = try box(at: source)
        let secret = Bytea(try box.seal("client", at: SecretContext.clientSecret(environment)))
        let password = Bytea(try box.seal("password", at: SecretContext.backendPassword(environment)))
        let token = Bytea(try box.seal("token", at: SecretContext.refreshToken(environment, person: 70)))
        try EnvironmentRows(
            id: 7, name: "acme", provider: .init(issuer: "http://127.0.0.1/7", clientID: "c", clientSecret: secret),
            domains: ["example.com"], backend: .init(password: password),
            people: ["ana@example.com": ["companyCode": "1010"]]
        ).insert(on: &connection)
        let client = UUID()
        try connection.run([
            "UPDATE realm.environment SET position = \(objectCount), generation = 4 WHERE id = 7",
            "INSERT INTO realm.realm (environment_id, id, path) VALUES (7, 90, '/users/bo@example.com')",
            "INSERT INTO access.person (environment_id, id, email) VALUES (7, 70, 'cy@example.com')",
            "INSERT INTO onboarding.refresh_token (environment_id, person_id, token) VALUES (7, 70, \(token))",
            """
            INSERT INTO store.object (environment_id, realm_id, kind, id, position, source_position, edit_position,
                deleted, fields)
            SELECT 7, 90, \(Kind.note), gen_random_uuid(), n, 0, n, n % 2 = 0,
                CASE WHEN n % 2 > 0 THEN '{"text":"a \\" \\\\ å ' || n || '"}' END
            FROM generate_series(1, \(objectCount)) AS n
            """,
            """
            INSERT INTO device.client (environment_id, person_id, client_id, next_sequence)
            VALUES (7, 70, \(client), 3)
            """,
            """
            INSERT INTO device.mutation (environment_id, person_id, client_id, sequence, position, problem)
            VALUES (7, 70, \(client), 1, 5, NULL), (7, 70, \(client), 2, NULL, '{"type":"x"}')
            """,
            """
            INSERT INTO submission.ledger (environment_id, entry_id, version, phase, operation, edit_position,
                lease_until, logged_at, wanted)
            VALUES (7, gen_random_uuid(), 2, 'unknown', 'create', 9, now(), 5, '{"hours":"7.5"}')
            """,
            """
            INSERT INTO pipeline.parked (group_name, environment_id, key, topic, partition, subject, position, reason,
                is_dead, is_circuit, attempts, next_at)
            VALUES ('g', 7, 'k', 't', 0, 'k', 0, 'why', true, false, 3, '-infinity')
            """,
            """
            INSERT INTO blob.content (environment_id, uploader, id, type, digest, bytes)
            SELECT 7, 70, gen_random_uuid(), 'image/png', '\\x00', '\\x0102ff' FROM generate_series(1, 20)
            """,
            "INSERT INTO poll.run (environment_id, run, started_at) VALUES (7, 12, '-infinity')",
            "INSERT INTO access.outline (environment_id, content, digest) VALUES (7, '{}', '\\x0102')",
        ])
        // Ids differ between installations.
        var other = try Connection(destination)
        try EnvironmentRows(id: 1, name: "other", backend: .init()).insert(on: &other)
        try other.run("SELECT setval('realm.environment_id_seq', 40)")
    }

    private init(reversing fixture: EnvironmentMoveFixture) {
        (source, destination, secretKeys) = (fixture.destination, fixture.source, fixture.secretKeys)
    }

    /// The same installations, for a move in the other direction.
    var reversed: EnvironmentMoveFixture { EnvironmentMoveFixture(reversing: self) }

    /// The box with the secret keys of an installation.
    func box(at installation: String) throws -> SecretBox { try SecretBox([secretKeys[installation] ?? ""]) }

    /// The box with the transfer key.
    func transferBox() throws -> SecretBox { try SecretBox([Self.key]) }

    func variables(at installation: String) -> [String: String] {
        [
            "FIELDPOST_DATABASE_URL": installation, "FIELDPOST_SECRET_KEYS": secretKeys[installation] ?? "",
            "KEY": Self.key,
        ]
    }

    /// Runs `fieldpost environment …`.
    func run(at installation: String, _ arguments: String...) throws -> CommandResult {
        try fieldpost(["environment"] + arguments, environment: variables(at: installation))
    }

    func line(_ result: CommandResult) throws -> String {
        try #require(result.status == 0, "\(result.errors)")
        return result.output.trimmingCharacters(in: .whitespacesAndNewlines)
    }

    /// Exports and imports everything.
    ///
    /// - Returns: The receipt.
    func transfer() throws -> String { try line(bring(stream())) }

    /// Returns the lines of a complete export.
    func stream(resume: String? = nil) throws -> [Substring] {
        let exported = try fieldpost(
            ["environment", "export", "acme", "--key-from", "KEY"] + (resume.map { ["--resume", $0] } ?? []),
            environment: variables(at: source))
        try #require(exported.status == 0, "\(exported.errors)")
        // The stream contains no secret in plain text.
        for secret in Self.secrets { #expect(!exported.output.contains(Data(secret.utf8).base64EncodedString())) }
        return exported.output.split(separator: "\n")
    }

    /// Imports lines of a stream.
    func bring(_ stream: some Sequence<Substring>, key: String = Self.key) throws -> CommandResult {
        var result: CommandResult?
        try withFolder { folder in
            let file = folder.appendingPathComponent("stream")
            try Self.data(stream).write(to: file)
            result = try fieldpost(
                ["environment", "import", file.path, "--key-from", "KEY"],
                environment: variables(at: destination).merging(["KEY": key]) { $1 })
        }
        return try #require(result)
    }

    /// Returns the lines up to the middle of the second page of objects.
    func firstPage(of stream: [Substring]) throws -> ArraySlice<Substring> {
        let parts = stream.indices.filter { stream[$0].hasPrefix(#"{"part""#) }
        try #require(parts.count > 2)
        return stream[..<((parts[1] + parts[2]) / 2)]
    }

    /// Returns the `--resume` that an interrupted import printed.
    static func resume(_ result: CommandResult) throws -> String {
        String(try #require(result.errors.firstMatch(of: try Regex("--resume (\\S+)"))?.output[1].substring))
    }

    static func data(_ stream: some Sequence<Substring>) -> Data { Data(stream.map { $0 + "\n" }.joined().utf8) }

    func move() throws {
        let receipt = try transfer()
        let token = try line(
            run(at: source, "cut-over", "acme", receipt, "--to", "https://new.example", "--key-from", "KEY"))
        _ = try line(run(at: destination, "activate", "acme", token, "--key-from", "KEY"))
    }

    /// Returns the rows of a table as text, without columns that differ, and with the names of kinds.
    func rows(of table: MovedTable, in environment: Int32, at installation: String) throws -> [String] {
        var connection = try Connection(installation)
        let name = Statement(stringLiteral: table.name)
        let kind: Statement =
            table.hasKindNumber
            ? "|| jsonb_build_object('kind', (SELECT k.name FROM realm.kind k WHERE k.number = t.kind))" : ""
        return try connection.run(
            """
            SELECT ((to_jsonb(t) \(kind)) - '{environment_id,client_secret,password,token}'::text[]
                - CASE WHEN \(table.name) = 'access.audit' THEN 'id' ELSE '' END)::text
            FROM \(name) t WHERE environment_id = \(environment)
                AND NOT (\(table.name) = 'access.audit' AND to_jsonb(t)->>'action' LIKE 'environment.%') ORDER BY 1
            """
        ).decode(String.self)
    }

    /// Cuts over and activates the copy, and compares all rows.
    func finish(_ receipt: String) throws {
        let token = try line(run(at: source, "cut-over", "acme", receipt, "--key-from", "KEY"))
        #expect(try line(run(at: destination, "activate", "acme", token, "--key-from", "KEY")) == "acme is active here")
        var connection = try Connection(destination)
        let here = try connection.run("SELECT id FROM realm.environment WHERE name = 'acme'")[0].decode(Int32.self)
        for table in MovedTable.all {
            #expect(
                try rows(of: table, in: here, at: destination) == rows(of: table, in: 7, at: source), "\(table.name)")
        }
        // The change log was not moved, and the check accepts that.
        let check = try fieldpost(
            ["check", "--environment", "acme", "--only", "changes", "--settle", "0"],
            environment: variables(at: destination))
        #expect(check.status == 0, "\(check)")
    }

    /// The number of triggers that block writes.
    func holdCount(at installation: String) throws -> Int64 {
        try count("SELECT count(*) FROM pg_trigger WHERE tgname LIKE 'moving%'", at: installation)
    }

    func count(_ statement: Statement, at installation: String) throws -> Int64 {
        var connection = try Connection(installation)
        return try connection.run(statement)[0].decode(Int64.self)
    }

    /// Exports on a separate connection.
    func export(write: @escaping ([UInt8]) throws -> Void) throws {
        var connection = try Connection(source, limits: MoveStore.limits)
        var export = try EnvironmentExport(
            "acme", secrets: try box(at: source), transfer: try transferBox(), resume: nil,
            on: &connection, write: write)
        try export.run(on: &connection)
    }
}
