import BackendConnections
import Foundation
import Model
import ObjectStore
import Postgres
import Secrets
import TestSupport
import Testing

@testable import Sandbox

/// `fieldpost environment defects` with the emulator of Compass.
@Suite(.ownThreads) struct DefectsCommandTests {
    private let conninfo: String
    private static let key = Data(repeating: 3, count: 32).base64EncodedString()

    init() throws {
        conninfo = try makeFoundationDatabase()
        var connection = try Connection(conninfo)
        try EnvironmentRows(id: 1, name: "acme").insert(on: &connection)
    }

    private func run(_ arguments: String..., secret: String = "secret-of-all") throws -> CommandResult {
        try fieldpost(
            ["environment", "defects"] + arguments,
            environment: [
                "FIELDPOST_DATABASE_URL": conninfo, "FIELDPOST_SECRET_KEYS": Self.key, "SECRET": secret,
            ])
    }

    private func add(port: Int, secret: String = "secret-of-all") throws -> CommandResult {
        try run(
            "add", "acme", "--server", "http://127.0.0.1:\(port)/", "--repository", "CCMRepo", "--user-database",
            "SAMPL", "--user", "fieldpost", "--password-from", "SECRET", "--json", secret: secret)
    }

    private func stored() throws -> DefectTracker? {
        var connection = try Connection(conninfo)
        return try DefectTracker.load(EnvironmentID(rawValue: 1), on: &connection)
    }

    private func secret() throws -> String {
        let sealed = try #require(try stored()?.account?.sealed)
        let context = SecretContext.defectAccount(EnvironmentID(rawValue: 1))
        return try SecretBox([Self.key]).openText(sealed.bytes, at: context)
    }

    /// Runs `body` with the emulator.
    private func withCompass(_ body: @Sendable (CompassSystem, Int) throws -> Void) async throws {
        let emulator = try CompassEmulator()
        emulator.system.load(
            CompassOrganisation(users: [
                CompassUser(name: "fieldpost", password: "secret-of-all", tokens: ["pat"], isService: true)
            ]))
        try await withService({ try await emulator.run(onRunning: $0) }) { port in
            try await withOwnThread { try body(emulator.system, port) }
        }
    }

    @Test func omittedOptionsKeepStoredValues() throws {
        let first = try add(port: 8190)
        #expect(first.status == 0, "\(first.errors)")
        let row = try #require(try first.rows().first)
        #expect(row["server"] as? String == "http://127.0.0.1:8190" && row["account"] as? String == "fieldpost")
        #expect(row["pollIntervalSeconds"] as? Int == 300 && row["recordType"] as? String == "Defect")
        #expect(try secret() == "secret-of-all")
        let second = try run("add", "acme", "--poll-interval", "60", "--record-type", "Bug")
        #expect(second.status == 0 && second.output.contains("60 s"), "\(second.errors)")
        #expect(try secret() == "secret-of-all")
        #expect(try stored()?.recordType == "Bug" && stored()?.database == "SAMPL")
        #expect(try run("add", "acme", "--password-from", "SECRET", secret: "new").status == 0)
        #expect(try secret() == "new" && stored()?.account?.user == "fieldpost")
        #expect(try run("add", "acme", "--token-from", "SECRET", secret: "pat").status == 0)
        #expect(try secret() == "pat" && stored()?.account?.user == nil)
        #expect(try run("add", "acme", "--no-account").status == 0)
        #expect(try stored() != nil && stored()?.account == nil)
        let shown = try fieldpost(
            ["environment", "show", "acme"], environment: ["FIELDPOST_DATABASE_URL": conninfo])
        #expect(shown.output.contains("http://127.0.0.1:8190 CCMRepo/SAMPL Bug"), "\(shown.output) \(shown.errors)")
        let removed = try run("remove", "acme")
        #expect(removed.status == 0 && removed.output == "acme has no defects anymore\n")
        #expect(try stored() == nil)
        #expect(try run("remove", "acme").errors.contains("acme has no defects"))
        var connection = try Connection(conninfo)
        let audited = try connection.run(
            "SELECT detail->>'changed' FROM access.audit WHERE action = 'environment.changed' ORDER BY id")
        #expect(
            try audited.map { try $0.value(0, as: String.self) }
                == Array(repeating: "defects", count: 5) + ["defects removed"])
    }

    /// People's passwords are used for the database for which they were given only.
    @Test func newTrackerRemovesPeoplesLogins() throws {
        var connection = try Connection(conninfo)
        func logins(after result: CommandResult) throws -> Int {
            #expect(result.status == 0, "\(result.errors)")
            return try connection.run("SELECT FROM backend.defect_account").count
        }
        #expect(try add(port: 8190).status == 0)
        let login: Statement = """
            INSERT INTO backend.defect_account (environment_id, realm_id, user_name, secret) VALUES (1, 7, 'ana', '')
            """
        try connection.run(login)
        #expect(try logins(after: add(port: 8190)) == 1)
        #expect(try logins(after: run("add", "acme", "--poll-interval", "60")) == 1)
        #expect(try logins(after: add(port: 8191)) == 0)
        try connection.run(login)
        #expect(try logins(after: run("add", "acme", "--user-database", "OTHER")) == 0)
        try connection.run([
            login, "INSERT INTO realm.realm (environment_id, id, path) VALUES (1, 7, '/users/ana@example.com')",
        ])
        let account = ObjectKey(realm: 7, kind: .defectAccount, id: UUID())
        var batch = WriteBatch(environment: EnvironmentID(rawValue: 1))
        batch.put(
            account, try CanonicalJSON(#"{"status": "good", "storedAt": "2026-11-23T13:00:00.000Z"}"#), decision: 0)
        _ = try batch.commit(on: &connection)
        #expect(try logins(after: run("remove", "acme")) == 0)
        let objects = try connection.run(RealmObject.load([account], in: EnvironmentID(rawValue: 1)))
        let stored = try RealmObject.byKey(objects)[account]?.decoded(as: DefectAccount.self, by: JSONDecoder())
        #expect(stored?.status == .unchecked, "the missing login is reported by the next check")
    }

    @Test func secretIsNeitherPrintedNorStoredUnsealed() throws {
        let result = try add(port: 8190, secret: "very-secret")
        #expect(result.status == 0 && !result.output.contains("very-secret"))
        let sealed = try #require(try stored()?.account?.sealed.bytes)
        #expect(!String(decoding: sealed, as: UTF8.self).contains("very-secret"))
    }

    @Test(arguments: [
        (["--server", "ftp://x"], 2, "not an https URL"),
        (["--server", "http://compass.example"], 2, "not an https URL"),
        (["--server", "https://compass.example/ccmweb"], 2, "without a path"),
        (["--poll-interval", "4"], 2, "--poll-interval must be from 5 to 86400"),
        (["--repository", ""], 2, "--repository is empty"),
        (["--user", "a", "--token-from", "SECRET"], 2, "give --user with --password-from"),
        (["--no-account", "--token-from", "SECRET"], 2, "give --user with --password-from"),
        (["--user", "a"], 1, "--user a needs --password-from"),
        (["--password-from", "SECRET"], 1, "--password-from needs --user"),
        (["--server", "https://c.example"], 1, "missing: --repository, --user-database"),
        (["--token-from", "NOTHING"], 1, "NOTHING is not set"),
    ]) func invalidOptionsAreRejected(arguments: [String], status: Int32, problem: String) throws {
        let result = try fieldpost(
            ["environment", "defects", "add", "acme"] + arguments,
            environment: [
                "FIELDPOST_DATABASE_URL": conninfo, "FIELDPOST_SECRET_KEYS": Self.key, "SECRET": "x",
            ])
        #expect(result.status == status && result.errors.contains(problem), "\(result.errors)")
        #expect(try stored() == nil)
    }

    @Test func checkReportsWorkingServer() async throws {
        try await withCompass { compass, port in
            #expect(try run("check", "acme").errors.contains("acme has no defects"))
            #expect(try run("check", "other").errors.contains("environment other does not exist"))
            _ = try add(port: port)
            let empty = try run("check", "acme", "--json")
            #expect(empty.status == 0, "\(empty.output) \(empty.errors)")
            #expect(try empty.rows().map { $0["check"] as? String } == ["server", "account", "record type", "queries"])
            try compass.perform(
                (1...5).map { CompassChange(user: "x", fields: ["Headline": "\($0)", "Severity": "3-Average"]) })
            let result = try run("check", "acme")
            #expect(result.status == 0 && result.output.contains("4 rows in pages of 2"), "\(result.output)")
            #expect(compass.withState { $0.workspace.queries.isEmpty }, "its query is removed")
            #expect(try run("add", "acme", "--token-from", "SECRET", secret: "pat").status == 0)
            #expect(try run("check", "acme").output.contains("a personal access token"))
        }
    }

    /// Without an account each person's own login is used, and the check counts the people with and without one.
    @Test func checkCountsPeoplesOwnLogins() async throws {
        try await withCompass { compass, port in
            _ = try add(port: port)
            var connection = try Connection(conninfo)
            for (number, status) in ["good", "good", "refused", "none"].enumerated() {
                let (email, id) = ("p\(number)@example.com", Int32(100 + number))
                try connection.run([
                    "INSERT INTO access.person (environment_id, email) VALUES (1, \(email))",
                    "INSERT INTO realm.realm (environment_id, id, path) VALUES (1, \(id), '/users/' || \(email))",
                ])
                if status == "none" { continue }
                try connection.run(
                    """
                    INSERT INTO backend.defect_account (environment_id, realm_id, user_name, secret)
                    VALUES (1, \(id), 'p', '')
                    """)
                var batch = WriteBatch(environment: EnvironmentID(rawValue: 1))
                let account = #"{"status":"\#(status)","storedAt":"2026-11-23T00:00:00.000Z"}"#
                batch.put(
                    ObjectKey(realm: id, kind: .defectAccount, id: UUID()), try CanonicalJSON(account), decision: 0)
                _ = try batch.commit(on: &connection)
            }
            let added = try run("add", "acme", "--no-account")
            #expect(added.status == 0 && added.output.contains("people's own logins"), "\(added.errors)")
            let check = try run("check", "acme")
            #expect(check.status == 0, "\(check.output) \(check.errors)")
            #expect(check.output.contains("0 unchecked, 2 good, 1 refused; 1 without a login"), "\(check.output)")
            #expect(check.output.contains("CCMRepo/SAMPL"))
            #expect(try run("add", "acme", "--user-database", "OTHER").status == 0)
            let wrong = try run("check", "acme")
            #expect(wrong.status == 1 && wrong.output.contains("has no database OTHER"), "\(wrong.output)")
        }
    }

    @Test func checkReportsFailures() async throws {
        try await withCompass { compass, port in
            func check(_ change: [String], secret: String = "secret-of-all") throws -> CommandResult {
                _ = try add(port: port)
                _ = try fieldpost(
                    ["environment", "defects", "add", "acme"] + change,
                    environment: [
                        "FIELDPOST_DATABASE_URL": conninfo, "FIELDPOST_SECRET_KEYS": Self.key, "SECRET": secret,
                    ])
                return try run("check", "acme")
            }
            for (change, problem) in [
                (["--repository", "Other"], "repository Other does not exist; available: CCMRepo"),
                (["--user-database", "OTHER"], "CCMRepo has no database OTHER; available: SAMPL"),
                (["--record-type", "Bug"], "record type Bug does not exist; available: Defect"),
                (["--server", "http://127.0.0.1:1"], "request not processed: "),
            ] {
                let result = try check(change)
                #expect(result.status == 1 && result.output.contains(problem), "\(result.output)")
                _ = try run("add", "acme", "--record-type", "Defect")
            }
            let refused = try check(["--user", "fieldpost", "--password-from", "SECRET"], secret: "wrong-one")
            #expect(refused.status == 1 && refused.output.contains("credentials rejected"), "\(refused.output)")
            #expect(!(refused.output + refused.errors).contains("wrong-one"))
            try compass.perform(
                (1...5).map { CompassChange(user: "x", fields: ["Headline": "\($0)", "Severity": "3-Average"]) })
            compass.withState { $0.switches.pageRowsMax = 3 }
            let small = try check([])
            #expect(small.status == 1 && small.output.contains("a page of 500 rows has 3, and another page follows"))
            compass.withState { ($0.switches.pageRowsMax, $0.switches.ignoresPageNumber) = (10_000, true) }
            let repeating = try check([])
            #expect(repeating.status == 1 && repeating.output.contains("repeats the previous page"))
            #expect(compass.withState { $0.workspace.queries.isEmpty }, "its query is removed nevertheless")
        }
    }
}
