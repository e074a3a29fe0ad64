import Environments
import Foundation
import Identity
import Model
import Moving
import Postgres
import TestSupport
import Testing

/// Two installations, and an environment with a few rows that goes from one to the other.
struct MovedEnvironment {
    let old: String
    let new: String
    let environment = EnvironmentID(rawValue: 7)
    private let secretKeys: [String: String]
    private static let key = Data(repeating: 3, count: 32).base64EncodedString()

    init(objectCount: Int64 = 1_000) throws {
        (old, new) = (try makeFoundationDatabase(), try makeFoundationDatabase())
        secretKeys = [
            old: Data(repeating: 1, count: 32).base64EncodedString(),
            new: Data(repeating: 2, count: 32).base64EncodedString(),
        ]
        var connection = try Connection(old)
        try EnvironmentRows(
            id: 7, name: "acme", provider: .init(issuer: "http://127.0.0.1/7"), domains: ["example.com"],
            backend: .init(), people: ["ana@example.com": [:]]
        ).insert(on: &connection)
        try connection.run([
            "INSERT INTO realm.realm (environment_id, id, path) VALUES (7, 90, '/users/bo@example.com')",
            "UPDATE realm.environment SET position = \(objectCount) WHERE id = 7",
            """
            INSERT INTO store.object (environment_id, realm_id, kind, id, position, source_position, edit_position,
                deleted, fields)
            SELECT 7, 90, \(Kind.note), gen_random_uuid(), n, 0, n, n % 2 = 0, CASE WHEN n % 2 > 0 THEN '{}' END
            FROM generate_series(1, \(objectCount)) AS n
            """,
        ])
        var other = try Connection(new)
        try other.run("SELECT setval('realm.environment_id_seq', 40)")
    }

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
        return exported.output.split(separator: "\n")
    }

    /// Has lines of a stream arrive.
    func bring(_ stream: some Sequence<Substring>) throws -> Answer {
        var answer: Answer?
        try withFolder { folder in
            let file = folder.appendingPathComponent("stream")
            try Self.data(stream).write(to: file)
            answer = try run(at: new, "import", file.path, "--key-from", "KEY")
        }
        return try #require(answer)
    }

    static func data(_ stream: some Sequence<Substring>) -> Data { Data(stream.map { $0 + "\n" }.joined().utf8) }

    func move() throws {
        let receipt = try transfer()
        let permission = try line(
            run(at: old, "leave", "acme", receipt, "--to", "https://new.example", "--key-from", "KEY"))
        _ = try line(run(at: new, "begin", "acme", permission, "--key-from", "KEY"))
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
            "acme", secrets: try SecretBox([secretKeys[old] ?? ""]), transfer: try SecretBox([Self.key]), resume: nil,
            on: &connection, write: write)
        try export.run(on: &connection)
    }
}
