import Backends
import Environments
import Foundation
import Identity
import Model
import Moving
import Postgres
import Realms
import TestSupport
import Testing

/// An environment goes from one installation to another.
@Suite(.ownThreads) struct EnvironmentMoveTests {
    private let old: String
    private let new: String
    private let oldKey = Data(repeating: 1, count: 32).base64EncodedString()
    private let newKey = Data(repeating: 2, count: 32).base64EncodedString()
    private let environment = EnvironmentID(rawValue: 7)
    private static let objectCount: Int64 = 2_500

    init() throws {
        (old, new) = (try makeFoundationDatabase(), try makeFoundationDatabase())
        var connection = try Connection(old)
        let box = try SecretBox([oldKey])
        let secret = Bytea(try box.seal("client", at: OAuthClient.secretPlace(environment)))
        let password = Bytea(try box.seal("password", at: BackendConfiguration.secretPlace(environment)))
        let token = Bytea(try box.seal("token", at: RefreshTokens.secretPlace(environment, person: 70)))
        try EnvironmentRows(
            id: 7, name: "acme",
            provider: .init(issuer: "http://127.0.0.1/7", clientID: "c", clientSecret: secret),
            domains: ["example.com"], backend: .init(password: password),
            people: ["ana@example.com": ["companyCode": "1010"]]
        ).insert(on: &connection)
        let client = UUID()
        try connection.run([
            "UPDATE realm.environment SET position = \(Self.objectCount), generation = 4 WHERE id = 7",
            "INSERT INTO realm.realm (environment_id, id, path) VALUES (7, 90, '/users/ana@example.com')",
            "INSERT INTO access.person (environment_id, id, email) VALUES (7, 70, 'ana@example.com')",
            "INSERT INTO onboarding.refresh_token (environment_id, person_id, token) VALUES (7, 70, \(token))",
            """
            INSERT INTO store.object (environment_id, realm_id, kind, id, position, source_position, edit_position,
                deleted, fields)
            SELECT 7, 90, 2, gen_random_uuid(), n, 0, n, n % 10 = 0,
                CASE WHEN n % 10 > 0 THEN '{"text":"a \\" \\\\ å ' || n || '"}' END
            FROM generate_series(1, \(Self.objectCount)) AS n
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

    private func run(at place: String, _ arguments: String...) throws -> Answer {
        try fieldpost(
            ["environment"] + arguments,
            environment: [
                "FIELDPOST_DATABASE_URL": place, "FIELDPOST_SECRET_KEYS": place == old ? oldKey : newKey,
                "KEY": Data(repeating: 3, count: 32).base64EncodedString(),
            ])
    }

    private func line(_ answer: Answer) throws -> String {
        try #require(answer.status == 0, "\(answer.errors)")
        return answer.output.trimmingCharacters(in: .whitespacesAndNewlines)
    }

    /// Exports, and imports the stream or its first bytes.
    private func transfer(_ resume: [String] = [], first bytes: Int? = nil) throws -> Answer {
        let exported = try fieldpost(
            ["environment", "export", "acme", "--key-from", "KEY"] + resume,
            environment: [
                "FIELDPOST_DATABASE_URL": old, "FIELDPOST_SECRET_KEYS": oldKey,
                "KEY": Data(repeating: 3, count: 32).base64EncodedString(),
            ])
        try #require(exported.status == 0, "\(exported.errors)")
        // A secret is in the stream in no readable form.
        for secret in ["password", "client", "token"] {
            #expect(!exported.output.contains(Data(secret.utf8).base64EncodedString()))
        }
        var answer: Answer?
        try withFolder { folder in
            let file = folder.appendingPathComponent("stream")
            let data = Data(exported.output.utf8)
            try data.prefix(bytes ?? data.count).write(to: file)
            answer = try run(at: new, "import", file.path, "--key-from", "KEY")
        }
        return try #require(answer)
    }

    /// The rows of a table as text, without what is to differ.
    private func rows(of table: MovedTable, in environment: Int32, at place: String) throws -> [String] {
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

    private func state(at place: String) throws -> (id: Int32, generation: Int64, position: Int64) {
        var connection = try Connection(place)
        return try connection.run("SELECT id, generation, position FROM realm.environment WHERE name = 'acme'")[0]
            .decode(Int32.self, Int64.self, Int64.self)
    }

    private func move() throws {
        let receipt = try line(transfer())
        let permission = try line(run(at: old, "leave", "acme", receipt, "--key-from", "KEY"))
        #expect(try line(run(at: new, "begin", "acme", permission, "--key-from", "KEY")) == "acme works here")
    }

    @Test func everyRowIsAtTheNewPlaceWithItsSecretsSealedAnew() throws {
        try move()
        let (id, generation, position) = try state(at: new)
        #expect(id == 41 && generation == 5 && position == Self.objectCount)
        for table in MovedTable.all {
            let (before, after) = (
                try rows(of: table, in: 7, at: old), try rows(of: table, in: id, at: new)
            )
            #expect(before == after, "\(table.name)")
        }
        #expect(try rows(of: .objects, in: id, at: new).count == Int(Self.objectCount))
        var connection = try Connection(new)
        let box = try SecretBox([newKey])
        let here = EnvironmentID(rawValue: id)
        let (client, password, token) = try connection.run(
            """
            SELECT p.client_secret, b.password, t.token FROM access.provider p
            JOIN backend.connection b USING (environment_id) JOIN onboarding.refresh_token t USING (environment_id)
            WHERE p.environment_id = \(id)
            """
        )[0].decode(Bytea.self, Bytea.self, Bytea.self)
        #expect(try box.openText(client.bytes, at: OAuthClient.secretPlace(here)) == "client")
        #expect(try box.openText(password.bytes, at: BackendConfiguration.secretPlace(here)) == "password")
        #expect(try box.openText(token.bytes, at: RefreshTokens.secretPlace(here, person: 70)) == "token")
        // What is made here does not get a number that came along.
        let made = try connection.run(
            "INSERT INTO realm.realm (environment_id, path) VALUES (\(id), '/common') RETURNING id"
        )[0].decode(Int32.self)
        #expect(made > 90)
    }

    @Test func aCutStreamGoesOnWhereItStopped() throws {
        // In the second page of objects, and then while it is held.
        let first = try transfer(first: 300_000)
        #expect(first.status != 0)
        let resume = try #require(first.errors.split(separator: " ").last.map(String.init))
            .trimmingCharacters(in: .whitespacesAndNewlines)
        let second = try transfer(["--resume", resume])
        let receipt = try line(second)
        // What had come did not come again.
        let count = try #require(second.errors.split(separator: " ").dropFirst().first.flatMap { Int64($0) })
        #expect(count < Self.objectCount, "\(second.errors)")
        let permission = try line(run(at: old, "leave", "acme", receipt, "--key-from", "KEY"))
        _ = try line(run(at: new, "begin", "acme", permission, "--key-from", "KEY"))
        let id = try state(at: new).id
        for table in MovedTable.all {
            let before = try rows(of: table, in: 7, at: old)
            #expect(try rows(of: table, in: id, at: new) == before, "\(table.name)")
        }
    }

    @Test func aHeldEnvironmentIsWrittenByNobodyAndOthersAre() throws {
        _ = try line(transfer())
        var connection = try Connection(old)
        try EnvironmentRows(id: 8, name: "other", backend: .init()).insert(on: &connection)
        for table in ["realm.environment", "submission.ledger", "device.client", "access.person"] {
            let key = Statement(stringLiteral: table == "realm.environment" ? "id" : "environment_id")
            let name = Statement(stringLiteral: table)
            let error = #expect(throws: PostgresError.self) {
                try connection.run("UPDATE \(name) SET \(key) = \(key) WHERE \(key) = 7")
            }
            #expect(error?.isLocked == true, "\(table)")
        }
        // One statement takes what is due of all environments.
        try connection.run("UPDATE pipeline.parked SET attempts = attempts + 1")
        #expect(try connection.run("SELECT attempts FROM pipeline.parked")[0].decode(Int32.self) == 3)
        // So does what removes what is old, and it goes on elsewhere.
        try connection.run("DELETE FROM submission.ledger")
        try connection.run("UPDATE realm.environment SET compacted_position = 1 WHERE id = 7")
        #expect(try connection.run("SELECT count(*) FROM submission.ledger")[0].decode(Int64.self) == 1)
        #expect(
            try connection.run("SELECT compacted_position FROM realm.environment WHERE id = 7")[0].decode(Int64.self)
                == 0)
        try connection.run("UPDATE realm.environment SET position = position + 1 WHERE id = 8")
    }

    /// What one environment's move leaves behind keeps nobody else from being restored.
    @Test func anInstallationIsRestoredThatAnEnvironmentHasLeft() throws {
        try move()
        var connection = try Connection(old)
        try EnvironmentRows(id: 8, name: "other", backend: .init()).insert(on: &connection)
        try connection.run(Lineage.restore)
        let rows = try connection.run("SELECT id, position > 1000000000 FROM realm.environment ORDER BY id")
        #expect(try rows.decode(Int32.self, Bool.self).map(\.1) == [false, true])
    }

    @Test func aStreamThatGoesOnElsewhereIsRefused() throws {
        let cut = try transfer(first: 300_000)
        let resume = try #require(cut.errors.split(separator: " ").last.map(String.init))
            .trimmingCharacters(in: .whitespacesAndNewlines)
        _ = try line(run(at: new, "discard", "acme"))
        let said = try transfer(["--resume", resume])
        #expect(said.status == 1 && said.errors.contains("export without --resume"), "\(said)")
        // What is begun anew is whole.
        _ = try line(transfer())
        #expect(try rows(of: .objects, in: state(at: new).id, at: new).count == Int(Self.objectCount))
    }

    /// Who takes it back, and who lets it go, at the same time: one of them does.
    @Test func aMoveThatWasTakenBackIsNotLeft() throws {
        _ = try line(transfer())
        var connection = try Connection(old)
        let move = try #require(try MoveStore.find("acme", on: &connection))
        _ = try line(run(at: old, "take-back", "acme"))
        #expect(throws: MoveFailure.self) {
            try MoveStore.markLeft(move, to: nil, also: "SELECT 1", on: &connection)
        }
        #expect(throws: MoveFailure.self) { try MoveStore.takeBack(move, also: "SELECT 1", on: &connection) }
    }

    @Test func onlyOneOfBothPlacesEverWorks() throws {
        let receipt = try line(transfer())
        // Nobody has let it go.
        #expect(try run(at: new, "begin", "acme", receipt, "--key-from", "KEY").status != 0)
        #expect(try line(run(at: old, "take-back", "acme")) == "acme goes on here")
        #expect(try state(at: old).generation == 5)
        var connection = try Connection(old)
        try connection.run("UPDATE realm.environment SET position = position + 1 WHERE id = 7")
        // What arrived is of a move that is no more.
        #expect(try run(at: old, "leave", "acme", receipt, "--key-from", "KEY").status != 0)
        #expect(try transfer().errors.contains("another move of acme"))
        #expect(try run(at: old, "leave", "acme", receipt, "--key-from", "KEY").status != 0)
        _ = try line(run(at: new, "discard", "acme"))
        try move()
        #expect(try run(at: old, "take-back", "acme").status != 0)
        let error = #expect(throws: PostgresError.self) {
            try connection.run("UPDATE realm.environment SET position = position + 1 WHERE id = 7")
        }
        #expect(error?.isDataError == true)
    }
}
