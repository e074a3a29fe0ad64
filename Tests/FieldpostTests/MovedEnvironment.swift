import Foundation
import Identity
import Model
import Postgres
import Secrets
import TenantMigration
import TestSupport
import Testing

/// Two installations, and an environment with rows of most sorts that goes from one to the other.
struct MovedEnvironment {
    let old: String
    let new: String
    let environment = EnvironmentID(rawValue: 7)
    private let secretKeys: [String: String]
    static let key = Data(repeating: 3, count: 32).base64EncodedString()
    /// What is stored sealed.
    static let secrets = ["password", "client", "token"]

    init(objectCount: Int64 = 1_000) throws {
        (old, new) = (try makeFoundationDatabase(), try makeFoundationDatabase())
        secretKeys = [
            old: Data(repeating: 1, count: 32).base64EncodedString(),
            new: Data(repeating: 2, count: 32).base64EncodedString(),
        ]
        var connection = try Connection(old)
        let box = try box(at: old)
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
        ])
        // The numbers differ, as they do between installations.
        var other = try Connection(new)
        try EnvironmentRows(id: 1, name: "other", backend: .init()).insert(on: &other)
        try other.run("SELECT setval('realm.environment_id_seq', 40)")
    }

    /// What the secrets of an installation are sealed with.
    func box(at place: String) throws -> SecretBox { try SecretBox([secretKeys[place] ?? ""]) }

    /// What the stream is sealed and authenticated with.
    func transferBox() throws -> SecretBox { try SecretBox([Self.key]) }

    func variables(at place: String) -> [String: String] {
        ["FIELDPOST_DATABASE_URL": place, "FIELDPOST_SECRET_KEYS": secretKeys[place] ?? "", "KEY": Self.key]
    }

    /// `fieldpost environment …`.
    func run(at place: String, _ arguments: String...) throws -> Answer {
        try fieldpost(["environment"] + arguments, environment: variables(at: place))
    }

    func line(_ answer: Answer) throws -> String {
        try #require(answer.status == 0, "\(answer.errors)")
        return answer.output.trimmingCharacters(in: .whitespacesAndNewlines)
    }

    /// Holds it, and has all of it arrive.
    ///
    /// - Returns: The receipt.
    func transfer() throws -> String { try line(bring(stream())) }

    /// The lines of the stream of an export to its end.
    func stream(resume: String? = nil) throws -> [Substring] {
        let exported = try fieldpost(
            ["environment", "export", "acme", "--key-from", "KEY"] + (resume.map { ["--resume", $0] } ?? []),
            environment: variables(at: old))
        try #require(exported.status == 0, "\(exported.errors)")
        // A secret is in the stream in no readable form.
        for secret in Self.secrets { #expect(!exported.output.contains(Data(secret.utf8).base64EncodedString())) }
        return exported.output.split(separator: "\n")
    }

    /// Has lines of a stream arrive.
    func bring(_ stream: some Sequence<Substring>, key: String = Self.key) throws -> Answer {
        var answer: Answer?
        try withFolder { folder in
            let file = folder.appendingPathComponent("stream")
            try Self.data(stream).write(to: file)
            answer = try fieldpost(
                ["environment", "import", file.path, "--key-from", "KEY"],
                environment: variables(at: new).merging(["KEY": key]) { $1 })
        }
        return try #require(answer)
    }

    /// The lines of a stream up to the middle of its second page of objects.
    func firstPage(of stream: [Substring]) throws -> ArraySlice<Substring> {
        let parts = stream.indices.filter { stream[$0].hasPrefix(#"{"part""#) }
        try #require(parts.count > 2)
        return stream[..<((parts[1] + parts[2]) / 2)]
    }

    /// With which `--resume` an import that was cut says that the stream goes on.
    static func resume(_ answer: Answer) throws -> String {
        String(try #require(answer.errors.firstMatch(of: try Regex("--resume (\\S+)"))?.output[1].substring))
    }

    static func data(_ stream: some Sequence<Substring>) -> Data { Data(stream.map { $0 + "\n" }.joined().utf8) }

    func move() throws {
        let receipt = try transfer()
        let permission = try line(
            run(at: old, "leave", "acme", receipt, "--to", "https://new.example", "--key-from", "KEY"))
        _ = try line(run(at: new, "begin", "acme", permission, "--key-from", "KEY"))
    }

    /// The rows of a table as text, without what is to differ.
    func rows(of table: MovedTable, in environment: Int32, at place: String) throws -> [String] {
        var connection = try Connection(place)
        let name = Statement(stringLiteral: table.name)
        return try connection.run(
            """
            SELECT (to_jsonb(t) - '{environment_id,client_secret,password,token}'::text[]
                - CASE WHEN \(table.name) = 'access.audit' THEN 'id' ELSE '' END)::text
            FROM \(name) t WHERE environment_id = \(environment)
                AND NOT (\(table.name) = 'access.audit' AND to_jsonb(t)->>'action' LIKE 'environment.%') ORDER BY 1
            """
        ).decode(String.self)
    }

    /// Begins what has arrived, and compares all rows.
    func finish(_ receipt: String) throws {
        let permission = try line(run(at: old, "leave", "acme", receipt, "--key-from", "KEY"))
        #expect(try line(run(at: new, "begin", "acme", permission, "--key-from", "KEY")) == "acme works here")
        var connection = try Connection(new)
        let here = try connection.run("SELECT id FROM realm.environment WHERE name = 'acme'")[0].decode(Int32.self)
        for table in MovedTable.all {
            #expect(try rows(of: table, in: here, at: new) == rows(of: table, in: 7, at: old), "\(table.name)")
        }
        // Its change log stayed, and nobody misses it.
        let check = try fieldpost(
            ["check", "--environment", "acme", "--what", "changes", "--settle", "0"], environment: variables(at: new))
        #expect(check.status == 0, "\(check)")
    }

    /// What keeps rows from being written.
    func holdCount(at place: String) throws -> Int64 {
        try count("SELECT count(*) FROM pg_trigger WHERE tgname LIKE 'moving%'", at: place)
    }

    func count(_ statement: Statement, at place: String) throws -> Int64 {
        var connection = try Connection(place)
        return try connection.run(statement)[0].decode(Int64.self)
    }

    /// An export on a connection of its own.
    func export(write: @escaping ([UInt8]) throws -> Void) throws {
        var connection = try Connection(old, limits: MoveStore.limits)
        var export = try EnvironmentExport(
            "acme", secrets: try box(at: old), transfer: try transferBox(), resume: nil,
            on: &connection, write: write)
        try export.run(on: &connection)
    }
}
